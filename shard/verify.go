package shard

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/zeebo/blake3"
)

// Damage is a file of a dataset that differs from what the manifest says.
type Damage struct {
	File string // its name in the folder
	Err  error
}

// Verify reads every byte of a dataset and checks every checksum and invariant of FORMAT.md. It
// returns the damaged files: first manifest and shards, then other files, then shards that the
// manifest does not list, which other programs would still read. If progress is not nil, it is
// called with the bytes read so far and the total. The error is not nil if there is no dataset or
// ctx ended. A file that cannot be read counts as damaged.
func Verify(ctx context.Context, fsys fs.FS, dir string, progress func(done, total int64)) ([]Damage, error) {
	damage, _, err := VerifyFirst(ctx, fsys, dir, math.MaxInt, progress)
	return damage, err
}

// VerifyFirst is Verify for callers that want only the first damaged files, at most limit of them.
// It also returns how many there are in all.
func VerifyFirst(ctx context.Context, fsys fs.FS, dir string, limit int, progress func(done, total int64)) (
	damage []Damage, damaged int64, err error) {
	m, err := ReadManifest(fsys, dir)
	switch {
	case err == nil:
	case !isDamage(err), errors.Is(err, shardfile.ErrOtherManifest): // nothing is known of a dataset
		return nil, 0, err
	default:
		return []Damage{{shardfile.ManifestName, err}}, 1, nil
	}
	files := shardfile.ReadingOf(fsys)
	v := &verifier{ctx: ctx, fs: files, dir: dir, layout: shardfile.NewLayout(shardfile.Shape(m.Schema)), progress: progress,
		limit: limit, buf: make([]byte, 256<<10)}
	for _, s := range m.Splits {
		v.total += s.ShardBytes()
	}
	for _, f := range m.Files {
		v.total += f.Bytes
	}
	for i := range m.Splits {
		info := &m.Splits[i]
		table, err := openTable(files, dir, m, info)
		if err != nil {
			v.report(info.List.File, err)
			continue
		}
		defer table.Close()
		v.tables[shardfile.SplitIndex(info.Name)] = table
		v.split(info, table)
	}
	for _, f := range m.Files {
		if shardfile.IsListName(f.Name) {
			continue // compared when it was opened
		}
		v.check(f.Name, func() error { return v.file(&f) })
	}
	v.check(shardfile.RunName, v.run)
	if err := ctx.Err(); err != nil {
		return v.damage, v.damaged, err
	}
	err = v.unlisted(m)
	return v.damage, v.damaged, err
}

type verifier struct {
	ctx         context.Context
	fs          shardfile.ReadFS
	dir         string
	layout      *shardfile.Layout
	progress    func(done, total int64)
	done, total int64
	buf         []byte
	limit       int                             // entries of damage
	damage      []Damage                        // the first
	damaged     int64                           // all
	tables      [shardfile.NumSplits]shardTable // nil where there is no such split, or its list is damaged
}

func (v *verifier) check(name string, f func() error) {
	if v.ctx.Err() != nil {
		return
	}
	if err := f(); err != nil && v.ctx.Err() == nil {
		v.report(name, err)
	}
}

func (v *verifier) report(name string, err error) {
	if v.damaged++; len(v.damage) < v.limit {
		v.damage = append(v.damage, Damage{name, err})
	}
}

// unlisted reports shards that are not in the manifest.
func (v *verifier) unlisted(m *Manifest) error {
	_, err := v.fs.Stat(shardfile.Join(v.dir, shardfile.AdditionCheckpointName))
	adding := err == nil
	var found []string // the first in order that fit into the list, and some more
	room, total := v.limit-len(v.damage), int64(0)
	note := func(name string) {
		total++
		if found = append(found, name); len(found)/2 > room {
			slices.Sort(found)
			found = found[:room]
		}
	}
	err = shardfile.WalkNames(v.fs, v.dir, func(n string) error {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		i, index, temp, ok := shardfile.ParseShardName(n)
		if p, isPart := shardfile.ParsePartName(n); isPart {
			if have, err := v.lists(m, p); err != nil {
				return err
			} else if unfinished := adding && m.Merged != nil && p.Part == m.Merged.Partitions; !have && !unfinished {
				note(n)
			}
			return nil
		}
		if !ok {
			return nil
		}
		if s := m.Split(shardfile.SplitNames[i]); adding && (temp || s != nil && index >= len(s.Shards)) {
			return nil // an unfinished addition has it
		} else if temp || s == nil || m.Merged != nil || index >= len(s.Shards) {
			note(n)
		}
		return nil
	})
	slices.Sort(found)
	total -= int64(len(found))
	for _, n := range found {
		v.report(n, shardfile.Corrupt(shardfile.Join(v.dir, n), -1, "not in the manifest"))
	}
	v.damaged += total
	return err
}

// lists reports whether the manifest lists the shard of a part. Of a split whose list is damaged
// nothing is known.
func (v *verifier) lists(m *Manifest, n shardfile.PartName) (bool, error) {
	if m.Split(shardfile.SplitNames[n.Split]) == nil || n.Temp {
		return false, nil
	}
	table := v.tables[n.Split]
	if table == nil {
		return true, nil
	}
	return table.has(n)
}

func (v *verifier) run() error {
	path := shardfile.Join(v.dir, shardfile.RunName)
	data, err := shardfile.ReadFile(v.fs, path, shardfile.MaxRunBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // run.json is optional
	}
	if err != nil {
		return err
	}
	_, err = shardfile.CheckSeal(path, data)
	return err
}

// file compares a file that is no shard with its entry in the manifest.
func (v *verifier) file(f *FileInfo) error {
	sum, err := v.hash(f.Name, f.Bytes)
	if err == nil && sum != f.BLAKE3 {
		err = shardfile.Corrupt(shardfile.Join(v.dir, f.Name), -1, "its BLAKE3 is %s, the manifest says %s", sum, f.BLAKE3)
	}
	return err
}

// hash returns the BLAKE3 of a file that must have the given size.
func (v *verifier) hash(name string, size int64) (sum string, err error) {
	return shardfile.HashFile(v.ctx, v.fs, shardfile.Join(v.dir, name), size, v.buf, v.count)
}

// count reports that n more bytes were checked.
func (v *verifier) count(n int) {
	v.done += int64(n)
	if v.progress != nil {
		v.progress(v.done, v.total)
	}
}

// isDamage reports whether an error says that a file is not what it must be, rather than that it
// could not be read.
func isDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated)
}

// split checks the shards of a split one by one, and then their totals.
func (v *verifier) split(info *SplitInfo, table shardTable) {
	c := &splitChecker{verifier: v, splitState: splitState{document: -1}, whole: blake3.New()}
	before := v.damaged
	for i := range table.len() {
		sh, err := table.at(i)
		if err != nil {
			v.report(info.List.File, err)
			return
		}
		v.check(sh.Name, func() error {
			before, done := c.splitState, v.done
			sum, err := c.shard(&sh)
			if err == nil && sum == sh.BLAKE3 || err != nil && !isDamage(err) {
				return err
			}
			// What is damaged is read again, to name all of it.
			c.splitState, v.done = before, done
			if sum, err = v.hash(sh.Name, sh.Bytes); err != nil {
				return err
			}
			if sum != sh.BLAKE3 {
				return c.blame(&sh, sum)
			}
			_, err = c.shard(&sh)
			return err
		})
	}
	if v.damaged > before {
		return // the totals of the other shards mean nothing
	}
	v.check(shardfile.ManifestName, func() error {
		st := &c.stats
		have := [...]int64{st.Rows, st.Tokens, st.LabelTokens, st.MinLength, st.MaxLength, st.MaxLabels}
		want := [...]int64{info.Examples, info.Tokens, info.LabelTokens, info.MinLength, info.MaxLength, info.MaxLabels}
		if have != want || !slices.Equal(st.Lengths(), info.Lengths) {
			return shardfile.Corrupt(shardfile.Join(v.dir, shardfile.ManifestName), -1,
				"split %s: counts or lengths differ from those of its rows", info.Name)
		}
		return nil
	})
}
