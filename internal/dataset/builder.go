package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// BuilderOptions describe a build. Schema, ShardBytes and Settings determine the bytes of the
// dataset, and must be the same when a build is resumed.
type BuilderOptions struct {
	Schema shard.Schema
	// ShardBytes is the size to which shards are filled, from 4 KiB to 64 GiB. 0 means 64 MiB. A
	// shard is larger only by its footer, or if a single row is.
	ShardBytes int64
	// MaxRowTokens is the longest row that Row accepts, labels counted separately, up to 1<<28.
	// 0 means 1<<20. It affects no bytes, but BuilderBytes depends on it.
	MaxRowTokens int
	// MaxShards is the maximum number of shards of both splits together. Their list stays in
	// memory. 0 means as many as there are names. It affects no bytes: a build that reached it can
	// be resumed with more.
	MaxShards int
	// Settings is a JSON object of everything outside this package that determines the rows. It
	// goes into the manifest as is, and is compared, in any order of its members, when a folder is
	// opened again.
	Settings json.RawMessage
	// MayChange reports whether an unfinished build may continue with another value of a setting,
	// because it would have made the same rows so far. Values are JSON. nil means no setting may
	// change.
	MayChange func(name, have, want string) bool
	// Overwrite removes what an earlier build left in the folder, finished or not. With Append it
	// removes an unfinished addition alone.
	Overwrite bool
	// Crowded says that others keep all cores busy: a full batch is written while Row waits, and is in the cache of its
	// core. It affects no bytes.
	Crowded bool
	// Part, if set, makes this the builder of one partition. Its Plan identifies the plan of the
	// build and must be the same when the part is resumed or merged.
	Part shardfile.Part
	Plan string
	// Append adds to the finished dataset in the folder. Its documents begin with FirstDocument.
	Append        bool
	FirstDocument int64
	addition      int // the number of this one, from 1 on, if its files have names of their own
}

func (o BuilderOptions) withDefaults() BuilderOptions {
	if o.ShardBytes == 0 {
		o.ShardBytes = 64 << 20
	}
	if o.MaxRowTokens == 0 {
		o.MaxRowTokens = 1 << 20
	}
	if o.MaxShards == 0 {
		o.MaxShards = MaxShards
	}
	if o.Settings == nil {
		o.Settings = json.RawMessage("{}")
	}
	return o
}

func (o BuilderOptions) validate() error {
	if err := shardfile.Shape(o.Schema).Validate(); err != nil {
		return err
	}
	if err := o.Part.Validate(); err != nil {
		return err
	}
	if o.ShardBytes < shardfile.MinShardBytes || o.ShardBytes > shardfile.MaxShardBytes {
		return fmt.Errorf("shard size %d: %w: from %d to %d bytes", o.ShardBytes, shard.ErrRange, shardfile.MinShardBytes,
			shardfile.MaxShardBytes)
	}
	if o.MaxShards < 1 || o.MaxShards > MaxShards {
		return fmt.Errorf("maximum number of shards %d: %w: from 1 to %d", o.MaxShards, shard.ErrRange, MaxShards)
	}
	if o.MaxRowTokens < 1 || o.MaxRowTokens > shardfile.MaxRowTokens {
		return fmt.Errorf("longest row %d: %w: from 1 to %d tokens", o.MaxRowTokens, shard.ErrRange, shardfile.MaxRowTokens)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(o.Settings, &object); err != nil || object == nil {
		return fmt.Errorf("settings are not a JSON object: %w", errors.Join(err, shard.ErrSchema))
	}
	return nil
}

// batchBytes returns the size at which record batches end.
func (o BuilderOptions) batchBytes() int64 {
	return min(o.ShardBytes/4, shardfile.MaxBatchBytes)
}

// MaxShards is the number of shard names, both splits together.
const MaxShards = shardfile.NumSplits * (shardfile.MaxShardIndex + 1)

// Memory for the list of shards, in bytes for each committed shard.
const (
	ListBytes   = 112    // while the build runs: a committedShard, with the slack of the slice
	FinishBytes = 5 << 8 // while Finish writes the manifest: two copies of its lines, and their parsed form
	// minBatchBytes is the size of the smallest full record batch, with rows of one token.
	minBatchBytes = shardfile.MaxBatchRows * (4 + 2 + 8 + 4)
	// openBatchBytes is the memory of a record batch of an open shard: its block, with the slice's
	// slack, and its part of the footer.
	openBatchBytes = 96
)

func (o BuilderOptions) checkShards(dir string, n int) error {
	if n > o.MaxShards {
		return fmt.Errorf("build %s: %w: %d shards and room for %d", dir, ErrShardList, n, o.MaxShards)
	}
	return nil
}

// BuilderBytes returns the maximum number of bytes that a Builder with these options holds while it
// appends rows and takes or reads checkpoints. Finish needs another FinishBytes for each shard.
func BuilderBytes(o BuilderOptions) int64 {
	o = o.withDefaults()
	row := int64(o.MaxRowTokens) * int64(o.Schema.IDWidth())
	// A growing buffer exists twice while its content is copied: the old one is at most half as
	// large.
	buffer := func(rowBytes int64) int64 {
		n := int64(roundUp(int(max(rowBytes+16, min(o.batchBytes()+16, shardfile.MaxBatchBytes)))))
		return n + n/2
	}
	split := int64(stageBytes) + 12<<10 + 5*3*2*shardfile.MaxBatchRows // stage, hasher; offsets, document, part
	split += buffer(row)
	if o.Schema.Labels {
		split += buffer(row)
	}
	if o.Schema.LossMask {
		split += buffer(int64(o.MaxRowTokens) / 8)
	}
	if o.Schema.Segments {
		const part = 24
		split += buffer(4*int64(o.MaxRowTokens)) + maxLent*part
	}
	split += split / int64(shardfile.NumSplits) // its part of the batch that is being written
	split += 16*int64(shardfile.NumBuckets) + 24<<10
	split += o.ShardBytes / minBatchBytes * openBatchBytes
	return int64(shardfile.NumSplits)*split + int64(o.MaxShards)*ListBytes + 2*checkpointBufferBytes + 16<<10
}

// Builder writes a dataset folder. It is not safe for concurrent use. While it takes rows, one other goroutine writes
// the batch before, with one more that hashes it, and one syncs files. After a file system error calls return that
// error, though it may be that of an earlier row, and OpenBuilder finds what was durable at the last Checkpoint.
type Builder struct {
	fs     shardfile.FS
	dir    string
	opts   BuilderOptions
	layout *shardfile.Layout
	lock   shardfile.Lock

	splits   [shardfile.NumSplits]buildSplit
	files    []shard.FileInfo // written by File, and those of base
	base     *shard.Manifest  // the dataset that is added to, or nil
	scratch  batchScratch
	namesNew bool // names changed since the folder's last sync
	ckpt     *checkpointWriter
	err      error

	copied  sync.WaitGroup // the batch that is being written has what was lent to it
	writing bool           // a batch is being written; false once settle has seen its end
	written chan error     // how that ended
	spare   *batch         // that batch, or an empty one; nil before the first was written

	last  *backgroundTask                // the newest sync, nil if none is unfinished
	ahead atomic.Pointer[backgroundTask] // what SyncAhead began, until the next Checkpoint
	ended *endedShard                    // nil if all shards that were ended have their names
}

// buildSplit is a split under construction. Its buffers are allocated with its first row.
type buildSplit struct {
	name     string
	stats    shardfile.Stats
	begun    int // shards, when the writer was last idle
	shards   []committedShard
	open     *openShard
	pending  *batch
	stage    []byte
	hash     *blake3.Hasher
	document int64 // the last row's; -1 before the first
	part     int32
}

// Row adds a copy of a row to a split, "train" or "val". The (document, part) of a split's rows
// must increase, unless they are packed. Errors about the row (ErrSchema, ErrRange, ErrTooLarge,
// ErrOrder, ErrNoSplit) leave the Builder unchanged; any other error is final.
func (b *Builder) Row(split string, e *Example) error {
	s, err := b.split(split)
	if err != nil {
		return err
	}
	if err := e.fits(b.opts.Schema); err != nil {
		return err
	}
	tokens := e.Tokens()
	if tokens > b.opts.MaxRowTokens || len(e.Labels) > b.opts.MaxRowTokens {
		return fmt.Errorf("row of %d tokens and %d labels: %w: the limit is %d", tokens, len(e.Labels),
			shard.ErrTooLarge, b.opts.MaxRowTokens)
	}
	if !b.opts.Schema.Segments && (e.Document < s.document || e.Document == s.document && e.Part <= s.part) {
		return fmt.Errorf("%w: document %d part %d after document %d part %d", ErrOrder, e.Document, e.Part,
			s.document, s.part)
	}
	if e.Lent != nil {
		e.Lent.borrower = b
	}
	s.prepare(b.layout)
	if s.pending.rows == shardfile.MaxBatchRows || s.pending.rows > 0 &&
		s.pending.bytes+rowBytes(b.layout.Schema, e) > b.opts.batchBytes() {
		if err := b.closeBatch(s); err != nil {
			return err
		}
	}
	if err := s.pending.add(b.layout, e); err != nil {
		return err
	}
	s.stats.Add(tokens, len(e.Labels))
	s.document, s.part = e.Document, e.Part
	return nil
}

// split returns the split of that name, for more rows.
func (b *Builder) split(name string) (*buildSplit, error) {
	if b.err != nil {
		return nil, b.err
	}
	i := shardfile.SplitIndex(name)
	if i < 0 {
		return nil, fmt.Errorf("%q: %w", name, shard.ErrNoSplit)
	}
	return &b.splits[i], nil
}

func (s *buildSplit) countBegun() {
	if s.begun = len(s.shards); s.open != nil {
		s.begun++
	}
}

func (s *buildSplit) prepare(l *shardfile.Layout) {
	if s.pending == nil {
		s.pending = newBatch(l)
		s.stage = make([]byte, 0, stageBytes)
		s.hash = blake3.New()
	}
}

// fail makes every later call return err.
func (b *Builder) fail(err error) error {
	if b.err == nil {
		b.err = err
	}
	return err
}

// commitShard ends the open shard. It is synced in the background, and then named.
func (b *Builder) commitShard(s *buildSplit) error {
	if b.ended != nil {
		if err := b.waitBackground(); err != nil {
			return err
		}
	}
	c, err := s.open.end(b.layout)
	if err != nil {
		return err
	}
	ended := *s.open
	ended.blocks = nil
	b.ended = &endedShard{&ended, b.inBackground(ended.syncFile)}
	s.open = nil
	s.shards = append(s.shards, c)
	return nil
}

// holdsLock returns an error once the folder's lock file is gone or replaced. Then another build
// may write here, and this one must stop.
func (b *Builder) holdsLock() error {
	if err := b.lock.Held(); err != nil {
		return fmt.Errorf("build in %s: %w; make sure that no other build runs there, then run the same build again",
			b.dir, err)
	}
	return nil
}

// syncNames makes the names in the folder durable, if any changed.
func (b *Builder) syncNames() error {
	if !b.namesNew {
		return nil
	}
	if err := b.fs.SyncDir(b.dir); err != nil {
		return fmt.Errorf("sync folder %s: %w", b.dir, shardfile.WithoutPath(err))
	}
	b.namesNew = false
	return nil
}

// seenLog returns the name of the log for the record of seen documents.
func (b *Builder) seenLog() string {
	if p := b.opts.Part; p.IsPart() {
		return p.ExtraName(shardfile.HashesName(0)) + shardfile.OriginsSuffix
	}
	return shardfile.SeenLogName
}

// Close releases the folder and keeps what the last Checkpoint made durable. After Finish it does
// nothing.
func (b *Builder) Close() error {
	if b.lock == nil {
		return nil
	}
	var errs []error
	if b.settle() == nil {
		errs = append(errs, b.waitBackground())
	} else if b.last != nil {
		<-b.last.done
	}
	if b.ended != nil { // after a failure the shard stays under its temporary name
		errs = append(errs, b.ended.shard.close())
		b.ended = nil
	}
	b.fail(fmt.Errorf("builder of %s: %w", b.dir, shard.ErrClosed))
	for i := range b.splits {
		if open := b.splits[i].open; open != nil {
			errs = append(errs, open.close())
		}
	}
	errs = append(errs, b.lock.Close())
	b.lock = nil
	return errors.Join(errs...)
}

// Written returns how many shards of a split were begun, and the rows and tokens (of input_ids) that were appended
// to it, with those before a resume; zeros for an unknown split.
func (b *Builder) Written(split string) (shards int, rows, tokens int64) {
	i := shardfile.SplitIndex(split)
	if i < 0 {
		return 0, 0, 0
	}
	s := &b.splits[i]
	return s.begun, s.stats.Rows, s.stats.Tokens
}

func (b *Builder) path(name string) string { return filepath.Join(b.dir, name) }
