package dataset

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// Provenance is the part of the manifest that describes neither rows nor settings.
type Provenance struct {
	Tokenizer shard.TokenizerInfo
	Sources   []shard.SourceInfo
	Counters  map[string]int64 // the build's, such as skipped records; equal for equal builds
	// Dropped counts the documents that filters dropped, by reason. If it is empty, the manifest
	// has no such member.
	Dropped map[string]int64
	// Run is marshalled to JSON, which must be an object, and becomes run.json: times, host, speed.
	// nil writes none.
	Run any
	// State is what the builder of a part passes to the merge.
	State json.RawMessage
}

// WriteFile writes a file next to the shards, such as TokenizerName or RejectsName, durably and
// atomically. The manifest lists it with its checksum. Files are not part of checkpoints: call it
// in the run that finishes the build.
func (b *Builder) WriteFile(name string, data io.Reader) error {
	if b.err != nil {
		return b.err
	}
	if !shardfile.ValidExtraName(name) {
		return fmt.Errorf("file name %q: %w", name, shard.ErrRange)
	}
	h := blake3.New()
	n, err := b.writeAtomic(name, io.TeeReader(data, h))
	if err != nil {
		return b.fail(err)
	}
	info := shard.FileInfo{Name: name, Bytes: n, BLAKE3: hex.EncodeToString(h.Sum(nil))}
	i, found := slices.BinarySearchFunc(b.files, name, func(f shard.FileInfo,
		n string) int {
		return strings.Compare(f.Name, n)
	})
	if found {
		b.files[i] = info
	} else {
		b.files = slices.Insert(b.files, i, info)
	}
	return nil
}

// writeAtomic writes the content of r to name, through a temporary file that it syncs, closes and
// renames. It does not sync the folder.
func (b *Builder) writeAtomic(name string, r io.Reader) (n int64, err error) {
	path, temp := b.path(name), b.path(name+shardfile.TempSuffix)
	if err := b.holdsLock(); err != nil {
		return 0, err
	}
	f, err := shardfile.CreateNew(b.fs, temp)
	if err != nil {
		return 0, err
	}
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	buf := make([]byte, stageBytes)
	for {
		m, err := io.ReadFull(r, buf)
		if m > 0 {
			if err := shardfile.WriteAt(f, temp, buf[:m], n); err != nil {
				return n, err
			}
			n += int64(m)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF { // an error that wraps one of them is no end
			break
		}
		if err != nil {
			return n, fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := f.Sync(); err != nil {
		return n, fmt.Errorf("sync %s: %w", temp, shardfile.WithoutPath(err))
	}
	err = f.Close()
	f = nil
	if err != nil {
		return n, fmt.Errorf("close %s: %w", temp, shardfile.WithoutPath(err))
	}
	if err := b.fs.Rename(temp, path); err != nil {
		return n, err
	}
	b.namesNew = true
	return n, nil
}

// Finish commits shards and run.json, and the manifest last, which makes the folder a dataset. Then
// it releases the folder. After an error the build can be resumed as after a crash.
func (b *Builder) Finish(p Provenance) (*shard.Manifest, error) {
	if b.err != nil {
		return nil, b.err
	}
	m, err := b.finish(p)
	if err != nil {
		return nil, b.fail(err)
	}
	return m, b.Close()
}

func (b *Builder) finish(p Provenance) (*shard.Manifest, error) {
	m := &shard.Manifest{Format: "dsload", Version: shard.FormatVersion, Schema: b.opts.Schema, Settings: b.opts.Settings,
		Tokenizer: p.Tokenizer,
		Sources:   p.Sources, Counters: p.Counters, Dropped: p.Dropped, Splits: []shard.SplitInfo{}, Files: b.files}
	if b.opts.Part.IsPart() {
		m.Part = &shard.PartitionInfo{Number: b.opts.Part.Number, Of: b.opts.Part.Of, Plan: b.opts.Plan, State: p.State}
	}
	if b.ofMerged() {
		m.Merged = &shard.JoinedInfo{Partitions: b.addedPart().Of, Plan: b.base.Merged.Plan}
	}
	if m.Counters == nil {
		m.Counters = map[string]int64{}
	}
	if m.Tokenizer.Special == nil {
		m.Tokenizer.Special = map[string]int64{}
	}
	for i := range b.splits {
		if b.splits[i].stats.Rows == 0 {
			continue
		}
		info, err := b.finishSplit(&b.splits[i])
		if err != nil {
			return nil, err
		}
		m.Splits = append(m.Splits, info)
	}
	if p.Run != nil { // while the last shard is synced
		run, err := encodeRun(p.Run)
		if err != nil {
			return nil, err
		}
		if _, err := b.writeAtomic(shardfile.RunName, bytes.NewReader(run)); err != nil {
			return nil, err
		}
	}
	if err := b.waitBackground(); err != nil {
		return nil, err
	}
	if err := b.syncNames(); err != nil {
		return nil, err
	}
	data, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", shardfile.ManifestName, err)
	}
	// Write only what a reader accepts.
	m, err = shard.ParseManifest(b.path(b.opts.Part.ManifestName()), data)
	if err != nil {
		return nil, err
	}
	if _, err := b.writeAtomic(b.opts.Part.ManifestName(), bytes.NewReader(data)); err != nil {
		return nil, err
	}
	if err := b.syncNames(); err != nil {
		return nil, err
	}
	// The dataset exists from here on. A crash leaves a checkpoint, and what belongs to it, that the
	// next OpenBuilder removes.
	return m, b.removeCheckpoint()
}

// removeCheckpoint removes what only an unfinished build needs. The checkpoint, by which the next
// OpenBuilder knows that there may be more to remove, goes once the rest is gone for good.
func (b *Builder) removeCheckpoint() error {
	part := b.opts.Part
	log, _ := b.seenNames()
	for _, name := range []string{part.ExtraName(shardfile.OriginsName) + shardfile.OriginsSuffix, part.ExtraName(shardfile.ValOriginsName) + shardfile.OriginsSuffix,
		log} {
		err := b.fs.Remove(b.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		b.namesNew = b.namesNew || err == nil
	}
	if err := b.syncNames(); err != nil {
		return err
	}
	if err := b.fs.Remove(b.path(b.checkpointName())); err != nil {
		return err
	}
	b.namesNew = true
	return b.syncNames()
}

// finishSplit commits the rest of a split and returns its entry in the manifest.
func (b *Builder) finishSplit(s *buildSplit) (shard.SplitInfo, error) {
	if s.pending != nil && s.pending.rows > 0 {
		if err := b.closeBatch(s); err != nil {
			return shard.SplitInfo{}, err
		}
	}
	if s.open != nil {
		if err := b.commitShard(s); err != nil {
			return shard.SplitInfo{}, err
		}
	}
	info := splitInfo(&s.stats)
	info.Name = s.name
	for j := range s.shards {
		info.Shards = append(info.Shards, b.shardInfo(s, j))
	}
	return info, nil
}

// encodeRun returns the bytes of run.json: the members of run, sorted and sealed.
func encodeRun(run any) ([]byte, error) {
	data, err := json.Marshal(run)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", shardfile.RunName, err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("encode %s: %w", shardfile.RunName, err)
	}
	return shardfile.EncodeSealed(members)
}
