package example

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/counts"
)

// Overflow is what happens to a document that is longer than an example may be.
type Overflow string

const (
	Chunk    Overflow = "chunk"    // the rest becomes further examples
	Truncate Overflow = "truncate" // the rest is dropped; special tokens stay
	Drop     Overflow = "drop"     // the whole document is dropped
)

// Overflows lists all values of Overflow.
var Overflows = []Overflow{Chunk, Truncate, Drop}

// Example is one row of a dataset before it is written. Its slices belong to the Cutter.
type Example struct {
	InputIDs []uint32
	Row      []byte   // in place of InputIDs: the ids as they lie in a shard
	Length   int      // tokens of Row
	Labels   []uint32 // ids of the target, or nil
	LossMask []bool   // whether a token is trained on, for CausalPair and Masked; nil elsewhere
	Document int64    // ordinal of the document
	Part     int32    // index of the example in the document
}

// Tokens returns how many input ids the example has.
func (e *Example) Tokens() int { return len(e.InputIDs) + e.Length }

// CutterOptions configures a Cutter.
type CutterOptions struct {
	MaxLength int      // tokens of the longest example, special tokens included; at least 1
	Overflow  Overflow // default Chunk

	Prefix, Suffix       []uint32 // around a document
	RowPrefix, RowSuffix []uint32 // around each example of it, outside Prefix and Suffix

	// LoneEnds lets the last token of Suffix be a row of its own after a full one: rows are packed together.
	// Elsewhere it takes the token before it along, since nothing is learned from a single token.
	LoneEnds bool

	// CountCuts has masked documents counted that become several examples.
	CountCuts bool

	// Final reports whether a token of Suffix or RowSuffix ends a text, so that CausalPair trains
	// on it after a target. By default none does.
	Final func(id uint32) bool
}

// A Cutter turns the ids of documents, which may come in pieces, into examples of at most MaxLength
// tokens. It belongs to one goroutine and allocates nothing in steady state. The calls for each
// document are:
//
//	Begin, Add, Add, …, End     for text
//	Begin, Pair                 for prompt and target in columns of their own
//	Begin, CausalPair           for prompt and target in one row
//	Begin, Masked               for text with a mask of its own, such as a conversation
//
// Examples come in order, with the document's ordinal and ascending parts; a document without ids
// gives none. The example passed to emit is valid until emit returns.
type Cutter struct {
	Counts  *counts.Counts // what the Cutter leaves out or shortens; never nil
	opts    CutterOptions
	ids     []uint32 // ids of the example that is being filled
	target  []uint32
	mask    []bool // the mask of ids, while CausalPair or Masked fills them
	masked  bool   // CausalPair or Masked is running
	keep    bool   // Masked is running, which keeps rows without a trained token
	example Example
	ordinal int64
	part    int32
	over    bool // the document is longer than MaxLength: the rest is dropped (Truncate, Drop)
}

// State is the state of a Cutter between two calls, for a checkpoint. It survives JSON unchanged.
type State struct {
	Ordinal int64 `json:"ordinal"`
	Part    int32 `json:"part"`
	Over    bool  `json:"over,omitempty"`

	IDs []uint32 `json:"ids,omitempty"`
}

// LengthError means that MaxLength leaves no room for text besides the special tokens.
type LengthError struct{ MaxLength, Special int } // tokens

func (e *LengthError) Error() string {
	return fmt.Sprintf("max length %d: the tokenizer's special tokens alone take %d; set at least %d",
		e.MaxLength, e.Special, e.Special+1)
}

// NewCutter checks the options and returns a Cutter. The error is a *LengthError if MaxLength is
// too small.
func NewCutter(o CutterOptions) (*Cutter, error) {
	if o.Overflow == "" {
		o.Overflow = Chunk
	}
	if !slices.Contains(Overflows, o.Overflow) {
		return nil, fmt.Errorf("overflow %q: must be one of %v", o.Overflow, Overflows)
	}
	if special := len(o.Prefix) + len(o.Suffix) + len(o.RowPrefix) + len(o.RowSuffix); o.MaxLength <= special {
		return nil, &LengthError{o.MaxLength, special}
	}
	if o.Final == nil {
		o.Final = func(uint32) bool { return false }
	}
	return &Cutter{opts: o, Counts: new(counts.Counts)}, nil
}

// Begin starts a document with its leading special tokens.
func (c *Cutter) Begin(ordinal int64) {
	c.ordinal, c.part, c.over = ordinal, 0, false
	c.ids = append(append(c.ids[:0], c.opts.RowPrefix...), c.opts.Prefix...)
}

// Add takes the next ids of the document.
func (c *Cutter) Add(ids []uint32, emit func(*Example) error) error {
	if c.opts.Overflow == Chunk {
		return c.chunk(ids, nil, false, emit)
	}
	room := c.full() - len(c.opts.Suffix) - len(c.ids)
	if len(ids) > room {
		ids, c.over = ids[:room], true
	}
	c.ids = append(c.ids, ids...)
	return nil
}

// End ends the document with its trailing special tokens and emits the rest.
func (c *Cutter) End(emit func(*Example) error) error {
	defer func() { c.ids = c.ids[:0] }()
	if c.part == 0 && len(c.ids) == len(c.opts.RowPrefix)+len(c.opts.Prefix) {
		c.Counts.Empty++
		return nil // no text: special tokens alone are not an example
	}
	if c.over && c.opts.Overflow == Drop {
		c.Counts.Dropped++
		return nil
	}
	if c.over {
		c.Counts.Truncated++
	}
	return c.end(emit)
}

// end adds Suffix and emits the rest.
func (c *Cutter) end(emit func(*Example) error) error {
	for i, id := range c.opts.Suffix {
		if i == len(c.opts.Suffix)-1 {
			if err := c.share(emit); err != nil {
				return err
			}
		}
		if err := c.chunk(c.opts.Suffix[i:i+1], nil, c.opts.Final(id), emit); err != nil {
			return err
		}
	}
	if len(c.ids) <= len(c.opts.RowPrefix) {
		return nil
	}
	return c.emitRow(true, emit)
}

// share ends a full row before its last token: the end of the document would be alone in the next one. It does
// not if the row is trained on for that token alone.
func (c *Cutter) share(emit func(*Example) error) error {
	o, last := &c.opts, len(c.ids)-1
	if o.LoneEnds || last < 1 || len(c.ids) < c.full() || len(o.RowPrefix)+len(o.RowSuffix) > 0 {
		return nil
	}
	id, trained := c.ids[last], c.masked && c.mask[last]
	if trained && !slices.Contains(c.mask[:last], true) {
		return nil
	}
	if c.ids = c.ids[:last]; c.masked {
		c.mask = c.mask[:last]
	}
	if err := c.nextRow(emit); err != nil {
		return err
	}
	if c.ids = append(c.ids, id); c.masked {
		c.mask = append(c.mask, trained)
	}
	return nil
}

// Pair makes one example of a prompt and its target, each with all special tokens. Neither is
// chunked: under Chunk and Truncate both are cut to MaxLength, under Drop the pair is dropped if
// either one is longer.
func (c *Cutter) Pair(prompt, target []uint32, emit func(*Example) error) error {
	defer func() { c.ids = c.ids[:0] }()
	if len(prompt) == 0 || len(target) == 0 {
		c.Counts.Empty++
		return nil
	}
	room := c.textRoom()
	if max(len(prompt), len(target)) > room {
		if c.opts.Overflow == Drop {
			c.Counts.Dropped++
			return nil
		}
		c.Counts.Truncated++
	}
	c.ids = c.surround(c.ids[:0], prompt, room)
	c.target = c.surround(c.target[:0], target, room)
	return c.emit(&Example{InputIDs: c.ids, Labels: c.target}, emit)
}

// CausalPair makes a document of a prompt followed by its target, with a mask that is true for the
// target and for the token that ends it. It overflows like text. An example without a token of the
// target is dropped and counted.
func (c *Cutter) CausalPair(prompt, target []uint32, emit func(*Example) error) error {
	c.masked = true
	defer func() { c.ids, c.mask, c.masked = c.ids[:0], c.mask[:0], false }()
	if len(prompt) == 0 || len(target) == 0 {
		c.Counts.Empty++
		return nil
	}
	c.mask = append(c.mask[:0], make([]bool, len(c.ids))...)
	if room := c.textRoom(); c.opts.Overflow != Chunk && len(prompt)+len(target) > room {
		if c.opts.Overflow == Drop {
			c.Counts.Dropped++
			return nil
		}
		prompt = prompt[:min(len(prompt), room)]
		target = target[:min(len(target), room-len(prompt))]
		if len(target) == 0 {
			c.Counts.WithoutTarget++
			return nil
		}
		c.Counts.Truncated++
	}
	if err := c.chunk(prompt, nil, false, emit); err != nil {
		return err
	}
	if err := c.chunk(target, nil, true, emit); err != nil {
		return err
	}
	return c.end(emit)
}

// Masked makes a document of ids with a mask that says which are trained on. It overflows like
// text. A document without a trained token is dropped and counted. Rows of other documents are
// always kept, so that a document stays complete.
func (c *Cutter) Masked(ids []uint32, mask []bool, emit func(*Example) error) error {
	c.masked, c.keep = true, true
	defer func() { c.ids, c.mask, c.masked, c.keep = c.ids[:0], c.mask[:0], false, false }()
	if len(ids) == 0 {
		c.Counts.Empty++
		return nil
	}
	if !slices.Contains(mask, true) {
		c.Counts.Untrained++
		return nil
	}
	c.mask = append(c.mask[:0], make([]bool, len(c.ids))...)
	if room := c.textRoom(); c.opts.Overflow != Chunk && len(ids) > room {
		if c.opts.Overflow == Drop {
			c.Counts.Dropped++
			return nil
		}
		if ids, mask = ids[:room], mask[:room]; !slices.Contains(mask, true) {
			c.Counts.WithoutTarget++
			return nil
		}
		c.Counts.Truncated++
	}
	if err := c.chunk(ids, mask, false, emit); err != nil {
		return err
	}
	return c.end(emit)
}

// textRoom returns how many ids of text fit an example that is a whole document.
func (c *Cutter) textRoom() int {
	return c.full() - len(c.opts.RowPrefix) - len(c.opts.Prefix) - len(c.opts.Suffix)
}

// full returns the length of ids at which an example is full: RowSuffix still follows.
func (c *Cutter) full() int { return c.opts.MaxLength - len(c.opts.RowSuffix) }

func (c *Cutter) surround(dst, ids []uint32, room int) []uint32 {
	dst = append(append(dst, c.opts.RowPrefix...), c.opts.Prefix...)
	dst = append(dst, ids[:min(len(ids), room)]...)
	return append(append(dst, c.opts.Suffix...), c.opts.RowSuffix...)
}

// chunk fills examples with ids, emitting each full one when more ids follow, and their mask, or loss for all of
// them where that is nil.
func (c *Cutter) chunk(ids []uint32, mask []bool, loss bool, emit func(*Example) error) error {
	for len(ids) > 0 {
		if len(c.ids) == c.full() {
			if err := c.nextRow(emit); err != nil {
				return err
			}
		}
		n := min(len(ids), c.full()-len(c.ids))
		c.ids = append(c.ids, ids[:n]...)
		if c.masked {
			for len(c.mask) < len(c.ids)-n { // RowPrefix
				c.mask = append(c.mask, false)
			}
			if mask != nil {
				c.mask, mask = append(c.mask, mask[:n]...), mask[n:]
			} else {
				for range n {
					c.mask = append(c.mask, loss)
				}
			}
		}
		ids = ids[n:]
	}
	return nil
}

// nextRow emits a row that others follow, and begins the next.
func (c *Cutter) nextRow(emit func(*Example) error) error {
	if c.masked && c.opts.CountCuts && c.part == 0 {
		c.Counts.Chunked++
	}
	if err := c.emitRow(false, emit); err != nil {
		return err
	}
	c.ids, c.mask = append(c.ids[:0], c.opts.RowPrefix...), c.mask[:0]
	return nil
}

// emitRow emits the collected ids with RowSuffix.
func (c *Cutter) emitRow(last bool, emit func(*Example) error) error {
	c.ids = append(c.ids, c.opts.RowSuffix...)
	e := Example{InputIDs: c.ids}
	if c.masked {
		switch trained := slices.Contains(c.mask, true); {
		case !trained && c.keep:
			c.Counts.UntrainedRows++
		case !trained:
			c.Counts.WithoutTarget++
			c.part++
			return nil
		}
		for _, id := range c.opts.RowSuffix {
			c.mask = append(c.mask, last && c.opts.Final(id))
		}
		if e.LossMask = c.mask; c.opts.CountCuts && c.part > 0 {
			c.Counts.LaterRows++
		}
	}
	return c.emit(&e, emit)
}

func (c *Cutter) emit(e *Example, emit func(*Example) error) error {
	c.example = *e
	c.example.Document, c.example.Part = c.ordinal, c.part
	c.part++
	return emit(&c.example)
}

// State returns a copy of the Cutter's state.
func (c *Cutter) State() State {
	return State{Ordinal: c.ordinal, Part: c.part, Over: c.over, IDs: append([]uint32(nil), c.ids...)}
}

// Restore sets the Cutter to a state that State returned under the same options.
func (c *Cutter) Restore(s State) error {
	if len(s.IDs) > c.opts.MaxLength || s.Part < 0 || s.Ordinal < 0 {
		return fmt.Errorf("restore a partial example of %d tokens under a maximum of %d", len(s.IDs), c.opts.MaxLength)
	}
	c.ordinal, c.part, c.over = s.Ordinal, s.Part, s.Over
	c.ids = append(c.ids[:0], s.IDs...)
	return nil
}

// Reset discards the current document.
func (c *Cutter) Reset() {
	*c = Cutter{opts: c.opts, Counts: c.Counts, ids: c.ids[:0], target: c.target, mask: c.mask[:0]}
}
