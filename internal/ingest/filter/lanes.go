package filter

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/cputime"
)

// Documents are looked for in batches, in lanes beside each other: one for each band of sketches, or for hashes that
// begin with the same bits. A lane finds which earlier document each of a batch must be compared with. Then, in their
// order, it is decided which documents stay. Before the next batch the lanes take the entries of those that stay in.

const (
	laneBits   = 4 // 1<<laneBits is bands
	batchKeys  = 256
	batchBytes = bands*batchKeys*(entryBytes+8+2*2) + batchKeys*(24+2*8)
	// lanesFrom is the room from which each lane has a table and a goroutine of its own.
	lanesFrom = 16 << 20
	// sameBatch marks the place in the batch of a document with the same entry, the last one before.
	sameBatch = 1 << 63
)

// A lane is a part of what a Seen looks for.
type lane struct {
	kind    Dedup
	number  int
	table   *table
	entries []entry
	found   []uint64 // for each key of the batch: number+1 of a document, or a place; 0 for none
	heads   [2 * batchKeys]uint16
	used    []uint16 // heads in use
	steps   chan step
	err     error
}

// A step is a batch that was decided, as numbers+1 of the documents that stay, and the one after it.
type step struct {
	kept []uint64
	keys [][]byte
	done *sync.WaitGroup
}

// newLanes returns the lanes of a Seen whose tables take up to poolBytes, none where there is neither the room nor a
// processor for them.
func newLanes(kind Dedup, file *scratch, poolBytes int64) (all []*lane) {
	if poolBytes < lanesFrom || runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	for i := range bands {
		all = append(all, &lane{kind: kind, number: i, table: newTable(file, poolBytes/bands),
			found: make([]uint64, batchKeys), steps: make(chan step)})
	}
	return all
}

func (l *lane) run() {
	cputime.Label("")
	for s := range l.steps {
		l.err = l.insert(s.kept)
		l.look(s.keys)
		l.err = cmp.Or(l.err, l.find())
		s.done.Done()
	}
}

func (l *lane) isOwn(e entry) bool { return l.kind == Near || laneOfHash(e) == l.number }

// laneOfHash returns the number of the lane that has an exact entry.
func laneOfHash(e entry) int { return int(e.first >> (64 - laneBits)) }

// look finds out where the entries of a batch may be.
func (l *lane) look(keys [][]byte) {
	l.used = l.heads[:2*len(keys)]
	clear(l.used)
	l.entries, l.found = l.entries[:0], l.found[:len(keys)]
	for _, key := range keys {
		l.entries = append(l.entries, l.kind.entry(key, l.number))
	}
	l.table.look(l.entries, l.found)
}

// find finds the entries of the batch.
func (l *lane) find() (err error) {
	for i, e := range l.entries {
		at := l.found[i]
		if l.found[i] = 0; !l.isOwn(e) {
			continue
		}
		has := false
		if l.found[i], has, err = l.table.find(e, at, l.kind.mask()); err != nil {
			return err
		}
		if !has {
			l.found[i] = l.sameBatch(e, uint16(i+1))
		} else if l.kind == Exact {
			l.found[i] = 1
		}
	}
	return nil
}

// sameBatch returns the place of the last entry in the batch that is the same, and notes this one's, from 1 on.
func (l *lane) sameBatch(e entry, place uint16) (v uint64) {
	high, _ := bits.Mul64(e.first<<laneBits, uint64(len(l.used)))
	h := int(high)
	for ; l.used[h] != 0; h = (h + 1) % len(l.used) {
		if at := l.used[h] - 1; l.entries[at] == e {
			v = sameBatch | uint64(at)
			break
		}
	}
	l.used[h] = place
	return v
}

// insert adds the entries of the documents that stay, which have a number+1.
func (l *lane) insert(kept []uint64) (err error) {
	for i, number := range kept {
		switch e := l.entries[i]; {
		case number == 0 || !l.isOwn(e):
		case l.found[i]&sameBatch != 0: // perhaps of one that stays
			_, err = l.table.put(l.kind.numbered(e, number), l.kind.mask())
		case l.found[i] == 0:
			err = l.table.add(l.kind.numbered(e, number))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Expect tells which keys are given to Add next, back to back: after those that were told before, or instead of them.
// They must stay as they are until the last one is added.
func (s *Seen) Expect(instead bool, keys []byte) {
	if s.lanes == nil {
		return
	}
	if instead {
		s.coming, s.at = s.coming[:0], len(s.batch)
	}
	for size := s.kind.KeyBytes(); len(keys) > 0; keys = keys[size:] {
		s.coming = append(s.coming, keys[:size])
	}
}

// place returns the place in the batch of the next key to be added.
func (s *Seen) place(key []byte) (int, error) {
	for {
		for ; s.at < len(s.batch); s.at++ {
			if &s.batch[s.at][0] == &key[0] {
				s.at++
				return s.at - 1, nil
			}
		}
		if n := slices.IndexFunc(s.coming, func(k []byte) bool { return &k[0] == &key[0] }); n >= 0 {
			s.coming = s.coming[n:]
		} else {
			s.coming = append(s.coming[:0], key)
		}
		n := min(len(s.coming), batchKeys)
		if err := s.next(s.coming[:n]); err != nil {
			return 0, err
		}
		s.coming = s.coming[n:]
	}
}

// next ends a batch and begins one with some keys.
func (s *Seen) next(keys [][]byte) error {
	kept := s.kept
	s.batch, s.at = append(s.batch[:0], keys...), 0
	s.kept, s.before = append(s.before[:0], make([]uint64, len(keys))...), kept
	var done sync.WaitGroup
	done.Add(len(s.lanes))
	for _, l := range s.lanes {
		l.steps <- step{kept, s.batch, &done}
	}
	done.Wait()
	for _, l := range s.lanes {
		if l.err != nil {
			return l.err
		}
	}
	return nil
}

// addBeside is addAlone with lanes.
func (s *Seen) addBeside(key []byte, number uint64) (isCopy bool, err error) {
	place, err := s.place(key)
	if err != nil {
		return false, err
	}
	if isCopy, err = s.seenBefore(place, key); !isCopy && err == nil {
		s.kept[place] = number
	}
	return isCopy, err
}

// seenBefore reports whether the document at a place of the batch, with a key, is a copy of one before it.
func (s *Seen) seenBefore(place int, key []byte) (bool, error) {
	var compared [bands]uint64
	n := 0
	for _, l := range s.lanes {
		v, number := l.found[place], uint64(0)
		for ; v&sameBatch != 0; v = l.found[v&^sameBatch] {
			if k := s.kept[v&^sameBatch]; k != 0 {
				number = k // that of the first one which stays
			}
		}
		if number = max(number, v); number == 0 || slices.Contains(compared[:n], number) {
			continue
		}
		compared[n] = number
		n++
		if alike, err := s.alike(key, number-1); alike || err != nil {
			return alike, err
		}
	}
	return false, nil
}
