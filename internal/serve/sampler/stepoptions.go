package sampler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/fault"
)

// Tail is what happens to the rows at the end of an epoch that do not make a whole step. A batch
// under a token budget is whole if the next row did not fit.
type Tail string

const (
	// Drop drops them.
	Drop Tail = "drop"
	// Pad fills the step with rows from the beginning of the epoch; their Position marks them.
	Pad Tail = "pad"
	// Keep serves them: the last batches are smaller, and later ranks may get none.
	Keep Tail = "keep"
	// Once serves each of them once, and every rank gets as many steps as the others: the last rows
	// are divided evenly, and a rank that gets one row less also gets a Filler. Under a token budget
	// and under Balance only a rank that would get no row gets a Filler.
	Once Tail = "once"
)

// Tails are all values of Tail, the default first.
var Tails = []Tail{Drop, Pad, Keep, Once}

// StepOptions configures how an order is dealt.
type StepOptions struct {
	BatchRows   int     // rows per batch, at least 1; under a token budget their maximum
	MaxTokens   int64   // 0 = off; else a batch takes as many rows as keep rows × PaddedLength(longest) ≤ MaxTokens
	Multiple    int     // the length of a batch is padded to a multiple of it; default 1
	FixedLength int     // if above 0, every batch has this length
	Rank, World int     // this stream's rank among World; default 0 of 1
	Tail        Tail    // default Drop
	Balance     Balance // default NoBalance
	Epochs      int64   // epochs in all, counted from position 0; 0 = endless
	Start       int64   // position of the first step
	Ahead       int     // rows whose lengths a token budget or Balance asks for at a time; default 256
}

// PaddedLength returns the length in tokens of a batch whose longest row has n.
func (o StepOptions) PaddedLength(n int64) int64 {
	if o.FixedLength > 0 {
		return max(n, int64(o.FixedLength))
	}
	m := int64(max(1, o.Multiple))
	return (n + m - 1) / m * m
}

// TooLongError reports a row that exceeds the token budget by itself.
type TooLongError struct {
	Item      Item
	MaxTokens int64
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("row %d (example %d) has %d tokens, more than max_tokens %d holds", e.Item.Position,
		e.Item.Row, e.Item.Length, e.MaxTokens)
}

// EmptyEpochError reports that epochs have no rows for a rank: under Drop their rows make no whole
// step, or an endless stream would never yield a row.
type EmptyEpochError struct {
	Rows        int64 // in the epoch
	Rank, World int
	Tail        Tail
}

func (e *EmptyEpochError) Error() string {
	switch {
	case e.Tail == Drop && e.World == 1:
		return fmt.Sprintf("the %d rows of an epoch do not make one whole step, and tail=drop drops the rest", e.Rows)
	case e.Tail == Drop:
		return fmt.Sprintf("the %d rows of an epoch do not make one whole step of %d ranks, "+
			"and tail=drop drops the rest", e.Rows, e.World)
	}
	return fmt.Sprintf("the %d rows of an epoch have none for rank %d of %d, and the stream has no end", e.Rows,
		e.Rank, e.World)
}

func (o StepOptions) withDefaults() StepOptions {
	o.World, o.Multiple = max(o.World, 1), max(o.Multiple, 1)
	o.Ahead = cmp.Or(o.Ahead, 256)
	o.Tail, o.Balance = cmp.Or(o.Tail, Drop), cmp.Or(o.Balance, NoBalance)
	return o
}

// check validates o and returns the first position that is not served, for epochs of the given
// number of rows.
func (o StepOptions) check(rows int64) (end int64, err error) {
	end = MaxPosition
	if o.Epochs > 0 && o.Epochs <= MaxPosition/rows {
		end = o.Epochs * rows
	}
	switch {
	case o.BatchRows < 1 || int64(o.BatchRows)*int64(o.World) > 1<<40:
		return 0, fault.BadOption("batch_size", nil, "must be at least 1")
	case o.Rank < 0 || o.Rank >= o.World:
		return 0, fault.BadOption("rank", nil, "must be 0 to world-1 (%d)", o.World-1)
	case o.MaxTokens < 0:
		return 0, fault.BadOption("max_tokens", nil, "must not be negative")
	case !slices.Contains(Tails, o.Tail):
		return 0, fault.BadOption("tail", nil, "must be drop, pad, keep or once")
	case !slices.Contains(Balances, o.Balance):
		return 0, fault.BadOption("balance", nil, "must be none, tokens or quadratic")
	case o.Epochs < 0:
		return 0, fault.BadOption("epochs", nil, "must not be negative")
	case o.Start < 0 || o.Start > end:
		return 0, fault.BadOption("start", nil, "row %d lies outside the %d rows of epochs=%d", o.Start, end,
			o.Epochs)
	}
	return end, nil
}

// Share returns which of the last n rows of an epoch the rank gets under Once, and whether it also
// gets a Filler, so that all ranks have as many.
func (o StepOptions) Share(n int64) (from, rows int64, fill bool) {
	world, rank := int64(o.World), int64(o.Rank)
	more := n % world // ranks that get one more
	from, rows = n/world*rank+min(rank, more), n/world
	if rank < more {
		return from, rows + 1, false
	}
	return from, rows, more > 0
}
