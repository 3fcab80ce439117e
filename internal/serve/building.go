package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

// A Building serves a dataset while it is built. The rows that its last checkpoint made durable can
// be read as a small dataset (a snapshot). A later checkpoint adds rows and changes none.
//
// Under the order none, a step takes the next rows, whatever the number of rows is. So a step is
// final as soon as a snapshot has all its rows: sampler.Drop deals exactly those. A stream
// (growingStream) deals such steps from the newest snapshot, and waits when it has caught up. Once
// the build has ended, it continues with the stream of the whole dataset from its position, which
// handles the uneven end and further epochs. Every other order, and the manifest, need the whole
// dataset: they wait for the end of the build.

// BuildInfo describes a build in progress.
type BuildInfo struct {
	Source    string // what is built, for people
	Tokenizer shard.TokenizerInfo
	// Done is closed when the build has ended, or can no longer end.
	Done <-chan struct{}
	// Err returns why there is no dataset, nil if there is. It is called after Done.
	Err func() error
}

const (
	// What is known about the shards of a build, and at its end the manifest, may take
	// minBuildingBytes and 1/buildingPart of the cap above MinMemory.
	buildingPart     = 8
	minBuildingBytes = 256 << 10
	// shardBytes is the memory of a snapshot for each shard.
	shardBytes = 1 << 10
	// pollEvery is the interval between checks of the checkpoint while a stream waits for it.
	pollEvery = 50 * time.Millisecond
)

// Building is the read path of a dataset that may still be being built. It implements feed.Backend
// and feed.Unfinished, and is safe for concurrent use.
type Building struct {
	opts   Options
	info   BuildInfo
	ledger *budget.Ledger

	mu     sync.Mutex
	looked time.Time   // when the checkpoint was last checked
	seen   fs.FileInfo // of the checkpoint that latest is of
	latest *snapshot   // nil before there is one
	whole  *Reader     // set once the build has ended
	failed error       // why there will be no dataset
	fault  error       // why the last checkpoint could not be read
	closed bool
}

// snapshot is a Reader of the rows of a checkpoint.
type snapshot struct {
	*Reader
	users int  // guarded by Building.mu
	old   bool // guarded by Building.mu: there is a later one
}

// OpenBuilding opens the dataset that is being built in the only folder of o.
func OpenBuilding(o Options, info BuildInfo) (*Building, error) {
	o.FS = cmp.Or[shard.FS](o.FS, shard.OS())
	if len(o.Datasets) != 1 {
		return nil, fmt.Errorf("open %d datasets of which one is being built: %w", len(o.Datasets),
			errors.ErrUnsupported)
	}
	b := &Building{opts: o, info: info}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	return b, b.failed
}

// AwaitRows waits until there are rows to serve, or the build has ended. The error is that of the
// build, or ctx's cause.
func (b *Building) AwaitRows(ctx context.Context) error {
	return b.await(ctx, func() bool {
		return b.latest != nil && len(b.latest.datasets[0].shards.Manifest().Splits) > 0
	})
}

// await waits until the build has ended or enough, which it calls with the lock held, returns true.
func (b *Building) await(ctx context.Context, enough func() bool) error {
	for {
		b.mu.Lock()
		b.update()
		ready, err := b.whole != nil || enough(), b.failed
		b.mu.Unlock()
		if err != nil || ready {
			return err
		}
		if err := b.wait(ctx); err != nil {
			return err
		}
	}
}

// wait waits until it is time to check again.
func (b *Building) wait(ctx context.Context) error {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.info.Done:
	case <-timer.C:
	}
	return nil
}

// update checks what can be served now. The caller holds the lock.
func (b *Building) update() {
	if b.whole != nil || b.failed != nil || b.closed {
		return
	}
	select {
	case <-b.info.Done:
		b.end()
		return
	default:
	}
	if since := time.Since(b.looked); since >= 0 && since < pollEvery {
		return
	}
	b.looked = time.Now()
	info, err := shard.StatUnfinished(b.opts.FS, DatasetDir(b.opts.Datasets[0]))
	if err != nil || b.seen != nil && sameFile(info, b.seen) {
		return // nothing new: the build has not begun, or is about to end
	}
	if next, err := b.open(); err == nil {
		b.seen = info
		b.replace(next)
	} else if !errors.Is(err, shard.ErrNotFound) && !errors.Is(err, shard.ErrShardList) {
		b.seen, b.fault = info, err
	}
}

// end opens the whole dataset, or notes why there is none.
func (b *Building) end() {
	err := b.info.Err()
	if err == nil {
		var r *Reader
		if r, err = Open(b.opts); err == nil {
			if err = b.lease(r); err == nil {
				b.whole = r
				b.replace(nil)
				return
			}
			err = errors.Join(err, r.Close())
		}
	}
	b.failed = &feed.RequestError{Status: http.StatusInternalServerError,
		Reason: fmt.Sprintf("build %s: %v", b.info.Source, err),
		Hint:   "fix the cause, then restart the server: what was built is kept"}
	b.replace(nil)
}

// lease takes the memory that the whole dataset needs beyond what was reserved.
func (b *Building) lease(r *Reader) error {
	var n int64
	for _, p := range r.memory() {
		n += p.Bytes
	}
	for _, p := range b.memory() {
		n -= p.Bytes
	}
	if n <= 0 || b.ledger == nil {
		return nil
	}
	if _, ok := b.ledger.TryAcquire(n); !ok {
		return fmt.Errorf("its manifest takes %d bytes more than the memory cap leaves; serve with a larger one", n)
	}
	return nil
}

// replace makes next the latest snapshot. The last of its users closes the one before.
func (b *Building) replace(next *snapshot) {
	if before := b.latest; before != nil {
		if before.old = true; before.users == 0 {
			_ = before.Close() // files that were only read
		}
	}
	b.latest = next
}

// open opens a snapshot.
func (b *Building) open() (*snapshot, error) {
	name, dir := splitName(b.opts.FS, b.opts.Datasets[0])
	shards, err := shard.ReaderOptions{MaxOpenShards: 16, MaxIndexBytes: indexBytes / 8}.OpenUnfinished(b.opts.FS, dir,
		b.info.Tokenizer, int(max(1, b.opts.buildingBytes()/shardBytes)))
	if err != nil {
		return nil, err
	}
	r := &Reader{fs: b.opts.FS, seal: b.opts.Seal, pack: pack.None, building: true}
	r.datasets = []*dataset{{name: name, dir: dir, shards: shards, maxLength: maxLengthOf(shards.Manifest()),
		checked: map[string]int{}}}
	return &snapshot{Reader: r}, nil
}

// now returns the whole dataset, else the latest snapshot unless that is before, else nothing. The
// caller must give the snapshot back.
func (b *Building) now(before *snapshot) (*Reader, *snapshot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	switch {
	case b.closed:
		return nil, nil, shard.ErrClosed
	case b.whole != nil || b.failed != nil:
		return b.whole, nil, b.failed
	case b.latest == nil || b.latest == before:
		return nil, nil, nil
	}
	b.latest.users++
	return nil, b.latest, nil
}

// giveBack ends the use of a snapshot.
func (b *Building) giveBack(s *snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.users--; s.users == 0 && s.old {
		_ = s.Close()
	}
}

// Await implements feed.Unfinished.
func (b *Building) Await(ctx context.Context, q *feed.Query) error {
	return b.await(ctx, func() bool {
		if q == nil || b.latest == nil {
			return false
		}
		_, err := b.latest.datasets[0].shards.Split(q.Split)
		return err == nil && b.serves(*q)
	})
}

// serves reports whether a query can be answered from the rows so far.
func (b *Building) serves(q feed.Query) bool {
	d := b.latest.datasets[0]
	if q.Shuffle != sampler.None || q.Bucket > 0 || q.Pack != "" && q.Pack != pack.None ||
		q.Balance != sampler.NoBalance || q.Mix != nil || d.maxLength == 0 {
		return false
	}
	padded := sampler.StepOptions{Multiple: q.PadToMultipleOf}.PaddedLength(int64(d.maxLength))
	return q.MaxTokens == 0 || padded <= q.MaxTokens
}

// Progress implements feed.Unfinished.
func (b *Building) Progress() *feed.BuildProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	if b.whole != nil || b.failed != nil {
		return nil
	}
	p := &feed.BuildProgress{Source: b.info.Source, Rows: map[string]int64{}}
	if b.latest != nil {
		for _, s := range b.latest.datasets[0].shards.Manifest().Splits {
			p.Rows[s.Name] = s.Examples
		}
	}
	return p
}

// Open implements feed.Backend.
func (b *Building) Open(q feed.Query) (*feed.Opening, error) {
	whole, s, err := b.now(nil)
	if err != nil {
		return nil, err
	}
	if whole != nil {
		return whole.Open(q)
	}
	if s == nil {
		return nil, errNoRows
	}
	defer b.giveBack(s)
	p, err := s.prepare(q)
	if err != nil {
		return nil, err
	}
	longest := int64(p.members[0].dataset.maxLength)
	p.bound = bound{rows: math.MaxInt64, shortest: 1, longest: longest} // of rows that are still to come
	if p.members[0].split.Schema().Labels {
		p.bound.longestLabels = longest
	}
	rowStream, err := s.newRowStream(p, dealt(p.steps, q.Start, math.MaxInt64))
	if err != nil && fault.OptionOf(err) != "start" {
		return nil, refused(err, "the dataset is still being built")
	}
	rows, tokens := p.bound.batch(p.steps)
	stream := &growingStream{building: b, prepared: p, position: q.Start}
	metadata := p.metadata(0)
	delete(metadata, "dsload.rows") // not yet known
	return &feed.Opening{
		Collate: p.collation, BatchRows: int(rows), BatchTokens: tokens,
		WindowBytes: rowStream.bytes(0, q.MaxTokens > 0, rows, 0), Searched: true, Stream: stream,
		Metadata: metadata,
		Waits:    func() bool { return !stream.ended.Load() }, LeftOut: stream.rowsLeftOut,
	}, nil
}

var errNoRows = &feed.RequestError{Status: http.StatusServiceUnavailable, Reason: "the dataset has no rows yet",
	Hint: "ask again later"}

// Dataset implements feed.Backend.
func (b *Building) Dataset(name string) ([][]byte, error) {
	b.mu.Lock()
	whole, err := b.whole, b.failed
	b.mu.Unlock()
	if whole == nil {
		return nil, cmp.Or[error](err, errNoRows)
	}
	return whole.Dataset(name)
}

// About implements feed.Backend.
func (b *Building) About() []feed.About {
	whole, s, _ := b.now(nil)
	if s != nil {
		defer b.giveBack(s)
		return s.About()
	}
	if whole != nil {
		return whole.About()
	}
	return nil
}

// Seal implements feed.Backend.
func (b *Building) Seal() string { return b.opts.Seal }

// Check implements feed.Backend.
func (b *Building) Check() error {
	b.mu.Lock()
	b.update()
	whole, err := b.whole, cmp.Or(b.failed, b.fault)
	b.mu.Unlock()
	if whole == nil {
		return err
	}
	return whole.Check()
}

// Close closes all files. Streams that still read get errors.
func (b *Building) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.replace(nil)
	if b.whole != nil {
		return b.whole.Close()
	}
	return nil
}

func (b *Building) defaults() string { return "" }

// buildingBytes returns the memory reserved for what is known about a build.
func (o Options) buildingBytes() int64 {
	return minBuildingBytes + max(0, cmp.Or(o.Memory, DefaultMemory)-MinMemory)/buildingPart
}

func (b *Building) memory() []budget.Share {
	return []budget.Share{
		{Name: "indexes", Bytes: indexBytes, Why: "12 bytes a record batch of open shards"},
		{Name: "building", Bytes: b.opts.buildingBytes(), Why: "shards of the unfinished dataset, then its manifest"},
	}
}

func (b *Building) share(l *budget.Ledger) {
	b.mu.Lock()
	b.ledger = l
	b.mu.Unlock()
}
