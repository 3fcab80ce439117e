package dataset

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	BySource  *BySource        // nil if it was not counted
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

// File writes a file next to the shards, such as TokenizerName or RejectsName, durably and
// atomically, while rows reach the disk in the background. The manifest lists it with its checksum. Files
// are not part of checkpoints: call it in the run that finishes the build.
func (b *Builder) File(name string, data io.Reader) error {
	b.SyncAhead()
	if err := b.settle(); err != nil {
		return err
	}
	name = b.named(name)
	if !shardfile.ValidExtraName(name) {
		return fmt.Errorf("file name %q: %w", name, shard.ErrRange)
	}
	h := blake3.New()
	n, err := b.writeAtomic(name, io.TeeReader(data, h))
	if err != nil {
		return b.fail(err)
	}
	info := shard.FileInfo{Name: name, Bytes: n, BLAKE3: hex.EncodeToString(h.Sum(nil))}
	i, found := slices.BinarySearchFunc(b.files, name, func(f shard.FileInfo, n string) int { return strings.Compare(f.Name, n) })
	if found {
		b.files[i] = info
	} else {
		b.files = slices.Insert(b.files, i, info)
	}
	return nil
}

// named returns the name that a file of a dataset of its own has in a part or in an addition.
func (b *Builder) named(name string) string {
	switch n := b.opts.addition; {
	case n == 0:
		return b.opts.Part.ExtraName(name)
	case name == shardfile.HashesName(0):
		return shardfile.HashesName(n)
	default:
		return shardfile.AdditionName(name, n)
	}
}

// create makes a file of what write writes, through a temporary file that it syncs, closes and renames. It does
// not sync the folder.
func (b *Builder) create(name string, write func(f shardfile.File, temp string) error) error {
	temp := b.path(name + shardfile.TempSuffix)
	if err := b.holdsLock(); err != nil {
		return err
	}
	f, err := shardfile.CreateNew(b.fs, temp)
	if err != nil {
		return err
	}
	if err = write(f, temp); err == nil {
		err = shardfile.Sync(f, temp)
	}
	if e := f.Close(); e != nil && err == nil {
		err = fmt.Errorf("close %s: %w", temp, shardfile.WithoutPath(e))
	}
	if err == nil {
		err = b.fs.Rename(temp, b.path(name))
	}
	b.namesNew = b.namesNew || err == nil
	return err
}

// writeAtomic creates a file with the content of r.
func (b *Builder) writeAtomic(name string, r io.Reader) (n int64, err error) {
	buf := make([]byte, stageBytes)
	err = b.create(name, func(f shardfile.File, temp string) error {
		for {
			m, err := io.ReadFull(r, buf)
			if m > 0 {
				if err := shardfile.WriteAt(f, temp, buf[:m], n); err != nil {
					return err
				}
				n += int64(m)
			}
			if err == io.EOF || err == io.ErrUnexpectedEOF { // an error that wraps one of them is no end
				return nil
			}
			if err != nil {
				return fmt.Errorf("write %s: %w", b.path(name), err)
			}
		}
	})
	return n, err
}

// Finish commits shards and run.json, and the manifest last, which makes the folder a dataset. Then
// it releases the folder. After an error the build can be resumed as after a crash.
func (b *Builder) Finish(p Provenance) (*shard.Manifest, error) {
	if err := b.settle(); err != nil {
		return nil, err
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
		if p.BySource != nil {
			setSources(&info, p.BySource.addTo(b.baseSplit(info.Name).Sources, i))
		}
		if err != nil {
			return nil, err
		}
		m.Splits = append(m.Splits, info)
	}
	if err := b.writeRun(p.Run); err != nil { // while the last shard is synced
		return nil, err
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
	if err := b.remove(part.ExtraName(shardfile.OriginsName)+shardfile.OriginsSuffix,
		part.ExtraName(shardfile.ValOriginsName)+shardfile.OriginsSuffix, b.seenLog()); err != nil {
		return err
	}
	return b.remove(b.checkpointName())
}

// finishSplit commits the rest of a split and returns its entry in the manifest.
func (b *Builder) finishSplit(s *buildSplit) (shard.SplitInfo, error) {
	if s.pending != nil && s.pending.rows > 0 {
		if err := errors.Join(b.closeBatch(s), b.settle()); err != nil {
			return shard.SplitInfo{}, err
		}
	}
	if s.open != nil {
		if err := b.commitShard(s); err != nil {
			return shard.SplitInfo{}, err
		}
	}
	info := splitInfo(s.name, &s.stats)
	for j := range s.shards {
		info.Shards = append(info.Shards, b.shardInfo(s, j))
	}
	return info, nil
}

// writeRun writes run.json: the members of run, sorted and sealed. It writes nothing for nil.
func (b *Builder) writeRun(run any) error {
	if run == nil {
		return nil
	}
	data, err := shardfile.EncodeSealed(run)
	if err != nil {
		return fmt.Errorf("encode %s: %w", shardfile.RunName, err)
	}
	_, err = b.writeAtomic(shardfile.RunName, bytes.NewReader(data))
	return err
}

// splitInfo returns the manifest's entry for a split with these rows, without shards.
func splitInfo(name string, s *shardfile.Stats) shard.SplitInfo {
	return shard.SplitInfo{Name: name, Examples: s.Rows, Tokens: s.Tokens, LabelTokens: s.LabelTokens, MinLength: s.MinLength,
		MaxLength: s.MaxLength, MaxLabels: s.MaxLabels, Lengths: s.Lengths()}
}

// addStats adds the rows of a manifest's entry.
func addStats(st *shardfile.Stats, s *shard.SplitInfo) {
	if st.Rows == 0 || s.MinLength < st.MinLength {
		st.MinLength = s.MinLength
	}
	st.MaxLength, st.MaxLabels = max(st.MaxLength, s.MaxLength), max(st.MaxLabels, s.MaxLabels)
	st.Rows += s.Examples
	st.Tokens += s.Tokens
	st.LabelTokens += s.LabelTokens
	for _, h := range s.Lengths {
		b := &st.Hist[shardfile.LengthBucket(int(h[0]))]
		b[0] += h[1]
		b[1] += h[2]
	}
}
