package shard

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"github.com/zeebo/blake3"
)

// MergeResult is what Finish made.
type MergeResult struct {
	CutBy  []string    // options whose budget dropped rows
	Splits []SplitInfo // without their shards
	Shards []int64     // of each split
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
	if m.splits[0].stats.rows+m.splits[1].stats.rows == 0 {
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
		if m.splits[n].stats.rows == 0 {
			continue
		}
		info := m.splits[n].stats.info()
		info.Name = splitNames[n]
		if m.splits[n].shards > int64(cmp.Or(m.o.MaxListed, maxListed)) {
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
	_, err = b.writeAtomic(ManifestName, r)
	r.Close() // ends the writer if the file could not be written
	if err != nil {
		return nil, err
	}
	if err := b.syncNames(); err != nil {
		return nil, err
	}
	if res.Seal, err = readSeal(m.fs, filepath.Join(m.dir, ManifestName)); err != nil {
		return nil, err
	}
	return res, nil
}

// writeFiles writes files next to the shards, and what is known about the run. It checks those that
// part 0 wrote.
func (m *Merger) writeFiles(b *Builder, files map[string]io.Reader, run any) error {
	for _, f := range m.first.Files {
		if !isPartExtra(f.Name) { // these are joined
			b.files = append(b.files, f)
		}
	}
	for _, name := range sortedKeys(files) {
		if err := b.WriteFile(name, files[name]); err != nil {
			return err
		}
	}
	for i := range m.first.Files {
		if f := &m.first.Files[i]; !isPartExtra(f.Name) {
			if err := m.compareFile(f); err != nil {
				return err
			}
		}
	}
	if run == nil {
		return nil
	}
	data, err := encodeRun(run)
	if err == nil {
		_, err = b.writeAtomic(RunName, bytes.NewReader(data))
	}
	return err
}

// compareFile checks a file that part 0 wrote.
func (m *Merger) compareFile(f *FileInfo) error {
	v := &verifier{ctx: m.ctx, fs: m.fs, dir: m.dir, buf: make([]byte, 64<<10)}
	if err := v.file(f, "the manifest of part 0"); err != nil {
		return fmt.Errorf("merge %s: %w; remove the files of part 0 and build partition 0/%d again", m.dir, err,
			len(m.parts))
	}
	return nil
}

// manifestWriter hashes and writes a manifest incrementally, in the layout of sealedWriter.
type manifestWriter struct {
	sealedWriter
	to   io.Writer
	hash *blake3.Hasher
	left int64 // bytes that it may still have
}

// flush passes the buffer on.
func (w *manifestWriter) flush() {
	if w.err != nil {
		return
	}
	w.hash.Write(w.b.Bytes()) // never fails
	if w.left -= int64(w.b.Len()); w.left < 0 {
		w.err = fmt.Errorf("%w: the manifest of this many shards is larger than readers accept; "+
			"build with larger shards", ErrTooLarge)
		return
	}
	_, w.err = w.to.Write(w.b.Bytes())
	w.b.Reset()
}

// write streams the manifest: the parts' manifests are read once more for each split.
func (m *Merger) write(to io.Writer, p Provenance, files []FileInfo, res *MergeResult) error {
	w := &manifestWriter{sealedWriter: *newSealedWriter(), to: to, hash: blake3.New(),
		left: maxManifestBytes}
	w.head(&Manifest{Format: m.first.Format, Version: m.first.Version, Schema: m.first.Schema, Settings: m.o.Settings,
		Tokenizer: m.first.Tokenizer, Sources: p.Sources, Counters: p.Counters, Dropped: p.Dropped})
	w.splits(res.Splits, func(s *SplitInfo) {
		fmt.Fprintf(&w.b, "%q: [", "shards")
		if err := m.writeShards(w, splitIndex(s.Name)); err != nil && w.err == nil {
			w.err = err
		}
		w.b.WriteString("]")
	})
	w.lines("files", len(files), func(i int) any { return files[i] })
	w.member("merged", MergeInfo{Partitions: m.o.Partitions, Plan: m.o.Plan})
	w.flush()
	fmt.Fprintf(&w.b, "%s%s%s", sealBefore, hex.EncodeToString(w.hash.Sum(nil)), sealAfter)
	if w.err != nil {
		return w.err
	}
	_, err := to.Write(w.b.Bytes())
	return err
}

// writeShards writes the lines of a split's shards, part by part.
func (m *Merger) writeShards(w *manifestWriter, split int) error {
	first := true
	return m.eachListed(split, func(info *ShardInfo) error {
		if !first {
			w.b.WriteString(",")
		}
		first = false
		w.b.WriteString("\n      ")
		w.value(info)
		if w.b.Len() > stageBytes {
			w.flush()
		}
		return w.err
	})
}

// writeList writes the list of a split's shards to a file of its own.
func (m *Merger) writeList(b *Builder, split int) (*ListInfo, error) {
	info := &ListInfo{File: ListName(splitNames[split]), Shards: m.splits[split].shards}
	r, w := io.Pipe()
	go func() {
		l, err := newListWriter(w, info.Shards)
		if err == nil {
			err = m.eachListed(split, func(s *ShardInfo) error {
				info.Bytes += s.Bytes
				return l.add(s)
			})
		}
		if err == nil {
			err = l.w.Flush()
		}
		w.CloseWithError(err)
	}()
	err := b.WriteFile(info.File, r)
	r.Close() // ends the writer where the file could not be written
	if err != nil {
		return nil, err
	}
	return info, nil
}

// eachListed passes the shards of a split that the budgets leave to a function, in order.
func (m *Merger) eachListed(split int, visit func(*ShardInfo) error) error {
	for i := range m.parts {
		left := m.parts[i].keep[split]
		if left == 0 {
			continue
		}
		p, err := m.part(i)
		if err != nil {
			return err
		}
		s := p.Split(splitNames[split])
		for j := range s.Shards {
			info := &s.Shards[j]
			if cut := m.parts[i].cut[split]; cut != nil && left <= info.Rows {
				if err := visit(cut); err != nil {
					return err
				}
				break
			}
			if err := visit(info); err != nil {
				return err
			}
			m.parts[i].listed[split] = j + 1
			if left -= info.Rows; left <= 0 {
				break
			}
		}
	}
	return nil
}

// Encode returns the bytes of a manifest's file.
func (m *Manifest) Encode() ([]byte, error) { return m.encode() }
