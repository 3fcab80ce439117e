package dataset

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// MergeResult is what Finish made.
type MergeResult struct {
	CutBy  []string          // options whose budget dropped rows
	Splits []shard.SplitInfo // without their shards
	Shards []int64           // one number for each split
	Seal   string
}

// Finish applies the budgets and writes the manifest. provenance is called with the options whose
// budget dropped rows. files are written next to the shards and listed with those of part 0.
func (m *Merger) Finish(provenance func(cutBy []string) (Provenance, error), files map[string]io.Reader) (*MergeResult,
	error) {
	res := &MergeResult{}
	var err error
	if res.CutBy, err = m.cut(); err != nil {
		return nil, err
	}
	if m.splits[0].stats.Rows+m.splits[1].stats.Rows == 0 {
		return nil, fmt.Errorf("merge %s: the parts hold no rows: %w", m.dir, ErrNoRows)
	}
	p, err := provenance(res.CutBy)
	if err != nil {
		return nil, err
	}
	b := &Builder{fs: m.fs, dir: m.dir, lock: m.lock}
	if err := m.writeFiles(b, files, p.Run); err != nil {
		return nil, err
	}
	for n := range m.splits {
		if m.splits[n].stats.Rows == 0 {
			continue
		}
		info := splitInfo(shardfile.SplitNames[n], &m.splits[n].stats)
		setSources(&info, m.splits[n].sources)
		if m.splits[n].shards > int64(cmp.Or(m.o.MaxListed, shardfile.MaxListed)) {
			if info.List, err = m.writeList(b, n); err != nil {
				return nil, err
			}
		}
		res.Splits, res.Shards = append(res.Splits, info), append(res.Shards, m.splits[n].shards)
	}
	b.namesNew = true
	if err := b.syncNames(); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(m.write(w, p, b.files, res)) }()
	_, err = b.writeAtomic(shardfile.ManifestName, r)
	r.Close() // ends the writer if the file could not be written
	if err != nil {
		return nil, err
	}
	if err := b.syncNames(); err != nil {
		return nil, err
	}
	if res.Seal, err = shardfile.ReadSeal(m.fs, filepath.Join(m.dir, shardfile.ManifestName)); err != nil {
		return nil, err
	}
	return res, nil
}

// writeFiles writes files next to the shards, and what is known about the run. It checks those that
// part 0 wrote.
func (m *Merger) writeFiles(b *Builder, files map[string]io.Reader, run any) error {
	for _, f := range m.first.Files {
		if !shardfile.IsPartExtra(f.Name) { // these are joined
			b.files = append(b.files, f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := b.File(name, files[name]); err != nil {
			return err
		}
	}
	for i := range m.first.Files {
		if f := &m.first.Files[i]; !shardfile.IsPartExtra(f.Name) {
			if err := m.compareFile(f); err != nil {
				return err
			}
		}
	}
	return b.writeRun(run)
}

// compareFile checks a file that part 0 wrote.
func (m *Merger) compareFile(f *shard.FileInfo) error {
	path := filepath.Join(m.dir, f.Name)
	sum, err := shardfile.HashFile(m.ctx, m.fs, path, f.Bytes, make([]byte, 64<<10), func(int) {})
	if err == nil && sum != f.BLAKE3 {
		err = shardfile.Corrupt(path, -1, "its BLAKE3 is %s, the manifest of part 0 says %s", sum, f.BLAKE3)
	}
	if err != nil {
		return fmt.Errorf("merge %s: %w; remove the files of part 0 and build partition 0/%d again", m.dir, err,
			len(m.parts))
	}
	return nil
}

// write streams the manifest: the parts' manifests are read once more for each split.
func (m *Merger) write(to io.Writer, p Provenance, files []shard.FileInfo, res *MergeResult) error {
	manifest := &shard.Manifest{Format: m.first.Format, Version: m.first.Version, Schema: m.first.Schema,
		Settings: m.o.Settings, Tokenizer: m.first.Tokenizer, Sources: p.Sources, Counters: p.Counters,
		Dropped: p.Dropped, Splits: res.Splits, Files: files,
		Merged: &shard.JoinedInfo{Partitions: m.o.Partitions, Plan: m.o.Plan}}
	return manifest.EncodeTo(to, func(split string, add func(shard.ShardInfo) error) error {
		return m.eachListed(shardfile.SplitIndex(split), func(info *shard.ShardInfo) error { return add(*info) })
	})
}

// writeList writes the list of a split's shards to a file of its own.
func (m *Merger) writeList(b *Builder, split int) (*shard.ListInfo, error) {
	info := &shard.ListInfo{File: shardfile.ListName(shardfile.SplitNames[split]), Shards: m.splits[split].shards}
	r, w := io.Pipe()
	go func() {
		l := &listWriter{w: bufio.NewWriterSize(w, shardfile.ListPageBytes)}
		l.w.WriteString(shardfile.ListMagic) // Flush returns its error
		l.w.Write(binary.LittleEndian.AppendUint64(nil, uint64(info.Shards)))
		err := m.eachListed(split, func(s *shard.ShardInfo) error {
			info.Bytes += s.Bytes
			return l.add(s)
		})
		w.CloseWithError(errors.Join(err, l.w.Flush()))
	}()
	err := b.File(info.File, r)
	r.Close() // ends the writer where the file could not be written
	if err != nil {
		return nil, err
	}
	return info, nil
}

// eachListed passes the shards of a split that the budgets leave to a function, in order.
func (m *Merger) eachListed(split int, visit func(*shard.ShardInfo) error) error {
	for i := range m.parts {
		left := m.parts[i].keep[split]
		if left == 0 {
			continue
		}
		p, err := m.part(i)
		if err != nil {
			return err
		}
		s := p.Split(shardfile.SplitNames[split])
		for j := range s.Shards {
			info, ends := &s.Shards[j], left <= s.Shards[j].Rows
			if cut := m.parts[i].cut[split]; ends && cut != nil {
				info = cut
			} else {
				m.parts[i].listed[split] = j + 1
			}
			if err := visit(info); err != nil {
				return err
			}
			if left -= s.Shards[j].Rows; ends {
				break
			}
		}
	}
	return nil
}

// listWriter writes the entries of a list.
type listWriter struct {
	w     *bufio.Writer
	rows  int64
	entry [shardfile.ListEntryBytes]byte
}

func (l *listWriter) add(info *shard.ShardInfo) error {
	name, ok := shardfile.ParsePartName(info.Name)
	content, err := hex.DecodeString(info.BLAKE3)
	footer, footerErr := hex.DecodeString(info.Footer)
	if err := errors.Join(err, footerErr); err != nil || !ok || len(content) != 32 || len(footer) != 32 {
		return fmt.Errorf("list shard %s: %w", info.Name, shard.ErrCorrupt)
	}
	l.rows += info.Rows
	number := uint32(name.Index)
	if name.Cut {
		number |= shardfile.ListCutBit
	}
	e := l.entry[:0]
	e = append(append(e, content...), footer...)
	e = binary.LittleEndian.AppendUint64(e, uint64(l.rows))
	e = binary.LittleEndian.AppendUint64(e, uint64(info.Tokens))
	e = binary.LittleEndian.AppendUint64(e, uint64(info.Bytes))
	e = binary.LittleEndian.AppendUint32(e, uint32(name.Part))
	e = binary.LittleEndian.AppendUint32(e, number)
	_, err = l.w.Write(e)
	return err
}
