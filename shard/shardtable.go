package shard

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
	"golang.org/x/sync/errgroup"
)

// shardTable has the entries of a split's shards, in memory or in a file.
type shardTable interface {
	len() int
	at(i int) (ShardInfo, error)
	size(i int) (int64, error)
	// find returns the shard that holds a row, and its first row.
	find(row int64) (i int, first int64, err error)
	// has reports whether a shard of this name is listed.
	has(n shardfile.PartName) (bool, error)
	Close() error
}

func openTable(fsys shardfile.ReadFS, dir string, m *Manifest, s *SplitInfo) (shardTable, error) {
	if s.List != nil {
		return openShardList(fsys, dir, m, s)
	}
	h := &heldShards{shards: s.Shards, starts: make([]int64, len(s.Shards)+1)}
	for i := range s.Shards {
		h.starts[i+1] = h.starts[i] + s.Shards[i].Rows
	}
	return h, nil
}

// heldShards are the shards that the manifest lists.
type heldShards struct {
	shards []ShardInfo
	starts []int64 // the first row of each shard, and the number of rows
}

func (h *heldShards) len() int                    { return len(h.shards) }
func (h *heldShards) at(i int) (ShardInfo, error) { return h.shards[i], nil }
func (h *heldShards) size(i int) (int64, error)   { return h.shards[i].Bytes, nil }
func (h *heldShards) Close() error                { return nil }

func (h *heldShards) find(row int64) (i int, first int64, err error) {
	i = sort.Search(len(h.shards), func(i int) bool { return h.starts[i+1] > row })
	return i, h.starts[i], nil
}

func (h *heldShards) has(n shardfile.PartName) (bool, error) {
	_, found := slices.BinarySearchFunc(h.shards, n.String(), func(sh ShardInfo, name string) int {
		return strings.Compare(sh.Name, name)
	})
	return found, nil
}

// HasShard reports whether the split of a dataset that was merged has a shard of this name.
func (r *Split) HasShard(name string) (bool, error) {
	if n, ok := shardfile.ParsePartName(name); ok && !n.Temp && shardfile.SplitNames[n.Split] == r.info.Name {
		return r.table.has(n)
	}
	return false, nil
}

// NumShards returns the number of the split's shards.
func (r *Split) NumShards() int { return r.table.len() }

// Shard returns the entry of the i-th shard.
func (r *Split) Shard(i int) (ShardInfo, error) { return r.table.at(i) }

// checkPresent checks that shards first to end of the split are files of the manifest's sizes.
func (r *Split) checkPresent(first, end int) error {
	for i := first; i < end; i++ {
		info, err := r.table.at(i)
		if err != nil {
			return err
		}
		path := shardfile.Join(r.d.dir, info.Name)
		st, err := r.d.fs.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = shardfile.MissingFile(path)
		case err != nil:
		case !st.Mode().IsRegular():
			err = shardfile.NotRegular(path, st.Mode())
		default:
			err = shardfile.CheckSize(path, st.Size(), info.Bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// presenceChecks is how many shards of a long list are looked up at once: on storage that is far
// away each takes a round trip.
const presenceChecks = 32

// checkAllPresent checks the presence of every shard.
func (r *Split) checkAllPresent() error {
	n := r.table.len()
	if r.info.List == nil {
		return r.checkPresent(0, n)
	}
	var group errgroup.Group
	group.SetLimit(presenceChecks)
	for at := 0; at < n; at += shardfile.ListPageEntries {
		group.Go(func() error { return r.checkPresent(at, min(n, at+shardfile.ListPageEntries)) })
	}
	return group.Wait()
}

// shardStates are the states of a split's shards: of all of them, or, where there are very many, of
// those that are open.
type shardStates struct {
	n   int
	all []readShard

	mu   sync.Mutex
	open map[int]*readShard // used where all is nil
}

// get returns the state of the i-th shard.
func (t *shardStates) get(i int) *readShard {
	if t.all != nil {
		return &t.all[i]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[i]
	if s == nil {
		s = &readShard{states: t, number: i}
		t.open[i] = s
	}
	return s
}

// isCurrent reports whether s, which the caller has locked, is still the state of its shard.
func (s *readShard) isCurrent() bool {
	if s.states == nil {
		return true
	}
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	return s.states.open[s.number] == s
}

// forget drops the state of a closed shard that the caller has locked.
func (s *readShard) forget() {
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	delete(s.states.open, s.number)
}

func (t *shardStates) close(p *shardPool) error {
	var errs []error
	t.each(func(s *readShard) {
		s.mu.Lock()
		defer s.mu.Unlock()
		errs = append(errs, p.shutLent(s))
		if s.file != nil {
			errs = append(errs, s.file.Close())
			s.file = nil
			s.kept.drop()
		}
	})
	return errors.Join(errs...)
}

// each calls do for every state.
func (t *shardStates) each(do func(*readShard)) {
	for i := range t.all {
		do(&t.all[i])
	}
	t.mu.Lock()
	open := slices.Collect(maps.Values(t.open))
	t.mu.Unlock()
	for _, s := range open {
		do(s)
	}
}
