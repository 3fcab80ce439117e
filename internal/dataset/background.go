package dataset

import (
	"fmt"
	"runtime"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// A finished shard is synced in the background while rows follow: the disk takes as long for it as two workers
// for some megabytes of text. It gets its name once it is synced, before the next checkpoint and before the next
// shard is finished. A crash before that leaves it under its temporary name, as one in the middle of committing
// it does.

// A full batch is written in the background, too, and hashed beside that, while rows fill the next one. Whatever looks
// at what a writer changes settles first.

var syncer = cputime.Named("syncer") // in profiles

// aheadBytes is how much the open shards must have gained for SyncAhead to sync them: less takes no longer than the
// rest of a checkpoint.
const aheadBytes = 1 << 20

// A backgroundTask is a sync of files that runs while the Builder continues.
type backgroundTask struct {
	done chan struct{}
	err  error // once done; that of an earlier task, too
}

func (t *backgroundTask) isDone() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// inBackground starts run once all earlier tasks are done, unless one has failed.
func (b *Builder) inBackground(run func() error) *backgroundTask {
	before := b.last
	t := &backgroundTask{done: make(chan struct{})}
	b.last = t
	go func() {
		syncer.Set()
		defer close(t.done)
		if before != nil {
			<-before.done
			t.err = before.err
		}
		if t.err == nil {
			t.err = run()
		}
	}()
	return t
}

// endedShard is a shard whose last byte was written and which is synced before it gets its name.
type endedShard struct {
	shard  *openShard
	synced *backgroundTask
}

// SyncAhead starts to sync the open shards in the background, so that the Checkpoint or Finish after it has little
// left to sync. It reports whether that is done; call it until then if a Checkpoint is to follow. An error is that
// of the Checkpoint or Finish.
func (b *Builder) SyncAhead() bool {
	if t := b.ahead.Load(); t != nil {
		return t.isDone()
	}
	if b.settle() != nil {
		return true
	}
	var gained int64
	var open []openShard // copies: the Builder continues
	for i := range b.splits {
		if s := b.splits[i].open; s != nil {
			gained += s.pos - s.synced
			s.synced = s.pos
			open = append(open, openShard{file: s.file, temp: s.temp})
		}
	}
	if gained < aheadBytes {
		return true
	}
	b.ahead.Store(b.inBackground(func() error {
		for i := range open {
			if err := open[i].syncFile(); err != nil {
				return err
			}
		}
		return nil
	}))
	return false
}

// waitBackground waits for what runs in the background, and gives the shard that was ended its name.
func (b *Builder) waitBackground() error {
	if b.last == nil {
		return nil
	}
	<-b.last.done
	if err := b.last.err; err != nil {
		return err
	}
	b.last = nil
	b.ahead.Store(nil)
	return b.nameEnded()
}

// nameEnded gives the shard that was ended its name, durably, now that its sync is over.
func (b *Builder) nameEnded() error {
	if b.ended == nil {
		return nil
	}
	if err := b.ended.synced.err; err != nil {
		return err
	}
	if err := b.holdsLock(); err != nil {
		return err
	}
	s := b.ended.shard
	b.ended = nil // rename closes the file, whatever happens
	if err := s.rename(); err != nil {
		return err
	}
	b.namesNew = true
	return b.syncNames()
}

// closeBatch has the pending rows written in the background, once those before them are.
func (b *Builder) closeBatch(s *buildSplit) error {
	if err := b.settle(); err != nil {
		return err
	}
	full, next := s.pending, b.spare
	if b.writing = true; b.written == nil {
		b.written = make(chan error, 1)
	}
	if b.opts.Crowded || runtime.GOMAXPROCS(0) == 1 { // nothing is beside the caller, and the batch is in the cache
		full.copyLent()
		b.written <- b.writeBatch(s, full)
		return b.settle()
	}
	if b.spare = full; next == nil {
		next = newBatch(b.layout)
	}
	s.pending = next
	b.copied.Add(1)
	go func() {
		writer.Set()
		full.copyLent()
		b.copied.Done()
		b.written <- b.writeBatch(s, full)
	}()
	return nil
}

// returnLent copies what is left of lent rows, once the writer has copied its own.
func (b *Builder) returnLent() {
	b.copied.Wait()
	for i := range b.splits {
		if p := b.splits[i].pending; p != nil {
			p.copyLent()
		}
	}
}

// settle waits for the batch that is being written. What the writer changes is the caller's until the next closeBatch.
func (b *Builder) settle() error {
	if b.writing {
		b.writing = false
		if err := <-b.written; err != nil {
			return b.fail(err)
		}
		for i := range b.splits {
			b.splits[i].countBegun()
		}
	}
	return b.err
}

// writeBatch writes a batch, into a new shard if it would exceed the open one's size.
func (b *Builder) writeBatch(s *buildSplit, full *batch) error {
	if b.ended != nil && b.ended.synced.isDone() {
		if err := b.nameEnded(); err != nil {
			return err
		}
	}
	if s.open != nil && s.open.pos+full.size(b.layout) > b.opts.ShardBytes {
		if err := b.commitShard(s); err != nil {
			return err
		}
	}
	if s.open == nil {
		if len(s.shards) > shardfile.MaxShardIndex {
			return fmt.Errorf("%w: more than %d shards; use larger ones", shard.ErrTooLarge, shardfile.MaxShardIndex+1)
		}
		shards := 1
		for i := range b.splits {
			shards += len(b.splits[i].shards)
			if b.splits[i].open != nil {
				shards++
			}
		}
		if err := b.opts.checkShards(b.dir, shards); err != nil {
			return err
		}
		if err := b.holdsLock(); err != nil {
			return err
		}
		open := newShard(b.fs, b.path(b.shardName(s.name, len(s.shards))), s.stage, s.hash)
		if err := open.create(b.layout); err != nil {
			return err
		}
		s.open, b.namesNew = open, true
	}
	if err := s.open.writeBatch(b.layout, full, &b.scratch, b.opts.Crowded); err != nil {
		return err
	}
	full.reset(b.layout)
	return nil
}
