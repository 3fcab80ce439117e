package sampler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/fault"
)

// Shuffle is how the rows of a source are ordered within an epoch.
type Shuffle string

const (
	// Full is a uniform permutation of all rows.
	Full Shuffle = "full"
	// Block shuffles blocks of BlockRows consecutive rows and keeps the order inside them: reads
	// stay sequential.
	Block Shuffle = "block"
	// None keeps the order of the split.
	None Shuffle = "none"
)

// Shuffles are all values of Shuffle, the default first.
var Shuffles = []Shuffle{Full, Block, None}

const (
	// BlockRows is the number of consecutive rows that Block keeps together.
	BlockRows = 256
	// DefaultGroup is the default of Options.Group.
	DefaultGroup = 256
	// MaxBucket is the largest window of length bucketing in rows: a window is held in memory.
	MaxBucket = 1 << 20
	// MaxSources is the largest number of sources in one order.
	MaxSources = 64
	// MaxPosition bounds positions: rows × epochs must stay below it.
	MaxPosition = 1 << 60
)

// Source is one dataset's split.
type Source struct {
	Rows   int64   // examples, at least 1
	Weight float64 // its part of a mix; ignored for a single source
}

// Options defines an order. Every field may change the order of rows.
type Options struct {
	Sources []Source
	Shuffle Shuffle // default Full
	Seed    uint64
	Bucket  int // rows to sort by length at once, see WindowRows; 0 = off, at most MaxBucket
	Group   int // rows that stay together when a sorted window is shuffled; default DefaultGroup
	// Changes sets other weights from given positions on. With any, a weight may be 0.
	Changes []Change
}

// Ref names an example: its source and its row there.
type Ref struct {
	Source int32
	Row    int64
}

// Item is one row of the order.
type Item struct {
	Ref
	Position int64 // in the order, counted through all epochs
	Length   int32 // tokens, or -1 if the order did not need it
	Shard    int32 // where a LocateFunc found the row: Shard and Off are for the caller
	Off      int64
}

// itemBytes is the size of an Item.
const itemBytes = 40

// LocateFunc sets Length, Shard and Off of items.
type LocateFunc func(items []Item) error

// Order maps positions to examples. It is not safe for concurrent use.
type Order struct {
	opts    Options
	rows    int64 // positions an epoch
	locate  LocateFunc
	sources []sourceOrder
	mix     mix
	user    *user // of windows
	scratch windowScratch
}

// NewOrder returns the order that o describes. locate is needed, and called, only for bucketing,
// balancing and token budgets, and by a Packed.
func NewOrder(o Options, locate LocateFunc) (*Order, error) {
	o.Group, o.Shuffle = cmp.Or(o.Group, DefaultGroup), cmp.Or(o.Shuffle, Full)
	switch {
	case len(o.Sources) == 0 || len(o.Sources) > MaxSources:
		return nil, fault.BadOption("mix", nil, "needs 1 to %d datasets", MaxSources)
	case o.Bucket < 0 || o.Bucket > MaxBucket:
		return nil, fault.BadOption("bucket", nil, "must be 0 to %d rows", MaxBucket)
	case o.Group < 1:
		return nil, fault.BadOption("group", nil, "must be at least 1")
	case !slices.Contains(Shuffles, o.Shuffle):
		return nil, fault.BadOption("shuffle", nil, "must be full, block or none")
	}
	order := &Order{opts: o, locate: locate, sources: make([]sourceOrder, len(o.Sources))}
	option, wrong := fault.Option("split"), ""
	for i, s := range o.Sources {
		if s.Rows < 1 || s.Rows >= MaxPosition/MaxSources {
			wrong = fmt.Sprintf("%d rows cannot be served", s.Rows)
		}
		order.rows += s.Rows
		order.sources[i] = sourceOrder{rows: uint64(s.Rows), source: uint64(i), seed: o.Seed, shuffle: o.Shuffle,
			epoch: -1}
	}
	if wrong == "" && len(o.Sources) > 1 {
		option = "mix"
		order.mix, wrong = newMix(&o, order.rows)
	}
	if wrong != "" {
		return nil, fault.BadOption(option, nil, "%s", wrong)
	}
	order.opts.Bucket = WindowRows(o.Bucket, o.Group, order.rows)
	order.user = alone()
	return order, nil
}

// Rows returns the number of positions in an epoch.
func (o *Order) Rows() int64 { return o.rows }

// bucketed reports whether items come with their lengths.
func (o *Order) bucketed() bool { return o.opts.Bucket > 0 }

// Append appends the n items from position on, which may span epochs. Errors are those of the
// LocateFunc.
func (o *Order) Append(dst []Item, position int64, n int) ([]Item, error) {
	if o.opts.Bucket == 0 {
		return o.appendShuffled(dst, position, n), nil
	}
	for n > 0 {
		window, err := o.windowOf(position)
		if err != nil {
			return dst, err
		}
		from := int(position - window.start)
		k := min(n, len(window.items)-from)
		dst = append(dst, window.items[from:from+k]...)
		position += int64(k)
		n -= k
	}
	return dst, nil
}

// appendShuffled appends the n items from position on before bucketing.
func (o *Order) appendShuffled(dst []Item, position int64, n int) []Item {
	have := len(dst)
	dst = slices.Grow(dst, n)[:have+n] // an item is set where it is: one that is appended is copied
	for items := dst[have:]; len(items) > 0; {
		n := int(min(int64(len(items)), o.rows-position%o.rows)) &^ 3 // within an epoch, in fours
		if n == 0 || len(o.sources) > 1 || o.opts.Shuffle != Full {
			items[0] = Item{Ref: o.shuffled(position), Position: position, Length: -1}
			n = 1
		} else {
			o.sources[0].permute(items[:n], position)
		}
		items, position = items[n:], position+int64(n)
	}
	return dst
}

// shuffled returns the example at a position before bucketing.
func (o *Order) shuffled(position int64) Ref {
	if len(o.sources) == 1 {
		return Ref{0, o.sources[0].at(position)}
	}
	s, k := o.mix.at(position)
	return Ref{int32(s), o.sources[s].at(k)}
}

// sourceOrder is the order of one source through its own epochs.
type sourceOrder struct {
	rows    uint64
	source  uint64
	seed    uint64
	shuffle Shuffle

	epoch int64 // the epoch of perm, -1 at first
	perm  permutation
	short uint64 // Block: index of the block that is shorter than the others, or the number of blocks
}

// at returns the row at the source's own position k.
func (s *sourceOrder) at(k int64) int64 {
	epoch, i := k/int64(s.rows), uint64(k)%s.rows
	if s.shuffle == None {
		return int64(i)
	}
	if epoch != s.epoch {
		s.setEpoch(epoch)
	}
	if s.shuffle == Full {
		return int64(s.perm.at(i))
	}
	// The short block may be in the middle: positions after it are shifted by the rows that it
	// lacks.
	if s.short < s.perm.n && i >= s.short*BlockRows {
		lacks := s.perm.n*BlockRows - s.rows
		if i -= s.short * BlockRows; i < BlockRows-lacks {
			return int64((s.perm.n-1)*BlockRows + i)
		}
		i += s.short*BlockRows + lacks
	}
	return int64(s.perm.at(i/BlockRows)*BlockRows + i%BlockRows)
}

// permute sets items to those from position on, if this is the only source and the shuffle is Full. Their number is a
// multiple of 4, and they are of one epoch.
func (s *sourceOrder) permute(items []Item, position int64) {
	if epoch := position / int64(s.rows); epoch != s.epoch {
		s.setEpoch(epoch)
	}
	l, r := s.perm.cell(uint64(position) % s.rows)
	for ; len(items) >= 4; items, position = items[4:], position+4 {
		var to [4]uint64
		to, l, r = s.perm.at4(l, r)
		for i := range to {
			items[i] = Item{Ref: Ref{0, int64(to[i])}, Position: position + int64(i), Length: -1}
		}
	}
}

func (s *sourceOrder) setEpoch(epoch int64) {
	s.epoch = epoch
	if s.shuffle == Full {
		s.perm = newPermutation(s.rows, key(s.seed, purposeFull, s.source, uint64(epoch)))
		return
	}
	blocks := (s.rows + BlockRows - 1) / BlockRows
	s.perm = newPermutation(blocks, key(s.seed, purposeBlock, s.source, uint64(epoch)))
	s.short = blocks
	if s.rows%BlockRows != 0 {
		s.short = s.perm.inverse(blocks - 1)
	}
}
