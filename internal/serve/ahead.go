package serve

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
	"golang.org/x/sync/errgroup"
)

const (
	// aheadRows is how many rows a prefetcher looks at together.
	aheadRows = 256
	// aheadLocal is how many rows are located together on a disk, where the first batch need not wait for all of their
	// record batches: the more there are, the less each costs. It is below manyLocations.
	aheadLocal = 1536
	// maxAheadRows is the maximum if whole windows are read, because these are sorted by place.
	maxAheadRows = 8192
	// aheadOpens is how many shards are opened concurrently.
	aheadOpens = 8
	// aheadExtents is how many record batches a prefetcher may be ahead of its stream.
	aheadExtents = 256
	// aheadBytes is the memory of a prefetcher: its rows, its order and its requests.
	aheadBytes = maxAheadRows*32 + 64<<10
)

// A prefetcher asks for the record batches of rows before a stream reads them from a bucket. The
// rows to come are computed, so nothing is guessed. If their order within a window depends on their
// lengths, it asks for all rows of the window, in the order of their places.
//
// It follows the stream, which reports its position. Its goroutine belongs to the file system, and
// ends with the stream or the file system.
type prefetcher struct {
	ahead   *store.Ahead
	order   *sampler.Order // without windows
	members []member
	steps   sampler.StepOptions // its rows are wanted, where window is 0
	// window is how many rows, from a multiple of it on, the stream reads together; 0 if it reads
	// only the rows of its rank.
	window int64

	start   sync.Once
	items   []sampler.Item
	extent  shard.Extent // the last one that was asked for
	source  int32        // its member
	asked   int
	extents [aheadExtents]int64 // positions of the last ones

	mu      sync.Mutex
	at      int64         // the position that the stream is at
	moved   chan struct{} // holds an element after at has changed
	closed  chan struct{}
	closing sync.Once
}

// newPrefetcher returns the prefetcher of a stream, or nil if the datasets are not in a bucket.
func (r *Reader) newPrefetcher(c *choice, window int64) (*prefetcher, error) {
	if r.buckets == nil {
		return nil, nil
	}
	options := c.order
	options.Bucket = 0
	order, err := sampler.NewOrder(options, nil)
	if err != nil {
		return nil, err
	}
	return &prefetcher{ahead: r.buckets.ReadAhead(), order: order, members: c.members, steps: c.steps, window: window,
		moved: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// bytes returns the memory of the prefetcher.
func (p *prefetcher) bytes() int64 {
	if p == nil {
		return 0
	}
	return aheadBytes
}

// reached reports that the stream next reads the rows from a position of the order on.
func (p *prefetcher) reached(position int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.at = position
	p.mu.Unlock()
	if p.window > 0 {
		position -= position % p.order.Rows() % p.window
	}
	p.ahead.Passed(position)
	select {
	case p.moved <- struct{}{}:
	default:
	}
	p.start.Do(func() { p.ahead.Go(func() { p.run(position) }) })
}

// close ends the prefetcher. It does not wait.
func (p *prefetcher) close() {
	if p == nil {
		return
	}
	p.closing.Do(func() {
		close(p.closed)
		p.ahead.Close()
	})
}

// run asks for rows from a position on. It ends with the stream, or when a shard cannot be opened;
// the stream will get that error too.
func (p *prefetcher) run(next int64) {
	for {
		if at := p.position(); next < at && p.window == 0 {
			next = at
		}
		var priority int64
		next, priority = p.gather(next)
		if next < 0 || p.open() != nil {
			return
		}
		for i := range p.items {
			if p.window == 0 {
				priority = p.items[i].Position
			}
			if !p.want(p.items[i], priority) {
				return
			}
		}
	}
}

func (p *prefetcher) position() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// gather sets items to the rows to ask for from a position on. It returns the position after them,
// or -1 if there are none, and the position where their window begins.
func (p *prefetcher) gather(from int64) (next, window int64) {
	p.items = p.items[:0]
	rows := p.order.Rows()
	if p.steps.Epochs > 0 && from/rows >= p.steps.Epochs {
		return -1, 0
	}
	epochEnd := (from/rows + 1) * rows
	if p.window > 0 {
		begin := from - from%rows%p.window
		n := min(max(p.window, aheadRows), maxAheadRows, begin+max(p.window, aheadRows)-from, epochEnd-from)
		p.items, _ = p.order.Append(p.items, from, int(n)) // without windows it cannot fail
		slices.SortFunc(p.items, func(a, b sampler.Item) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Row, b.Row))
		})
		return from + n, begin
	}
	batch := int64(p.steps.BatchRows)
	step := batch * int64(p.steps.World)
	for len(p.items) < aheadRows && from < epochEnd {
		mine := from + batch*int64(p.steps.Rank)
		n := min(batch, epochEnd-mine)
		if p.steps.Tail == sampler.Once && from+step > epochEnd {
			mine, n, _ = p.steps.Share(epochEnd - from)
			mine += from
		}
		if n = min(n, maxAheadRows-int64(len(p.items))); n > 0 {
			p.items, _ = p.order.Append(p.items, mine, int(n))
		}
		from += step
	}
	return min(from, epochEnd), 0
}

// open opens the shards of the items, several at once.
func (p *prefetcher) open() error {
	type place struct {
		source int32
		shard  int
	}
	var group errgroup.Group
	group.SetLimit(aheadOpens)
	seen := map[place]bool{}
	for _, it := range p.items {
		split := p.members[it.Source].split
		i, err := split.ShardOf(it.Row)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		at := place{it.Source, i}
		if !seen[at] && len(seen) < openShards/2 {
			seen[at] = true
			group.Go(func() error { return split.OpenShard(at.shard) })
		}
	}
	return group.Wait()
}

// want asks for what reading a row takes, once there is room. It returns false if the stream has
// ended or the row's shard cannot be read.
func (p *prefetcher) want(it sampler.Item, priority int64) bool {
	if p.asked > 0 && it.Source == p.source && it.Row >= p.extent.First && it.Row < p.extent.End {
		return true
	}
	var err error
	if p.extent, err = p.members[it.Source].split.Extent(it.Row); err != nil {
		return false
	}
	p.source = it.Source
	for !p.near(priority) || !p.ahead.Want(p.extent.Path, p.extent.Off, p.extent.Len, priority) {
		if p.window == 0 && it.Position < p.position() {
			return true // the stream was faster
		}
		select {
		case <-p.ahead.Room():
		case <-p.moved:
		case <-p.closed:
			return false
		}
	}
	p.extents[p.asked%aheadExtents] = priority
	p.asked++
	select {
	case <-p.closed:
		return false
	default:
		return true
	}
}

// near reports whether a position is near enough to the stream's to ask for. Want alone does not
// hold a prefetcher back, because cached blocks take no room.
func (p *prefetcher) near(position int64) bool {
	at := p.position()
	return p.asked < aheadExtents || p.extents[p.asked%aheadExtents] < at || position-at <= p.window
}
