package example

import "fmt"

// Overflow is what happens to a document that is longer than an example may be.
type Overflow string

const (
	Chunk    Overflow = "chunk"    // the rest becomes further examples
	Truncate Overflow = "truncate" // the rest is left out; special tokens stay
	Drop     Overflow = "drop"     // the whole document is left out
)

// Example is one row of a dataset before it is written. Its slices belong to the Cutter.
type Example struct {
	InputIDs []uint32
	Labels   []uint32 // ids of the target; nil where there is none
	Document int64    // ordinal of the document
	Part     int32    // which example of the document
}

// CutterOptions say how documents become examples.
type CutterOptions struct {
	MaxLength      int      // tokens of the longest example, special tokens included; at least 1
	Overflow       Overflow // default Chunk
	Prefix, Suffix []uint32 // what the tokenizer puts around a document
}

// A Cutter turns the ids of documents, which may come in pieces, into examples of at most MaxLength tokens. It is used by one goroutine and allocates
// nothing in steady state. Document by document:
//
//	Begin, Add, Add, …, End     for text
//	Begin, Pair                 for prompt and target
//
// Examples come in order, with the document's ordinal and ascending parts; a document without ids gives none. What emit is handed is valid until it returns.
type Cutter struct {
	opts    CutterOptions
	ids     []uint32 // of the example that is being filled
	target  []uint32
	example Example
	ordinal int64
	part    int32
	over    bool  // the document is longer than MaxLength: the rest is left out (Truncate, Drop)
	dropped int64 // documents left out under Drop
}

// State is a Cutter between two calls, as a checkpoint keeps it. JSON brings it back unchanged.
type State struct {
	Ordinal int64    `json:"ordinal"`
	Part    int32    `json:"part"`
	Over    bool     `json:"over,omitempty"`
	Dropped int64    `json:"dropped"`
	IDs     []uint32 `json:"ids,omitempty"`
}

// LengthError says that MaxLength leaves no room for a token of text beside the special ones.
type LengthError struct{ MaxLength, Special int } // tokens

func (e *LengthError) Error() string {
	return fmt.Sprintf("max length %d: the tokenizer's special tokens alone take %d; write at least %d", e.MaxLength, e.Special, e.Special+1)
}

// NewCutter checks the options; a *LengthError says that MaxLength is too small.
func NewCutter(o CutterOptions) (*Cutter, error) {
	if o.Overflow == "" {
		o.Overflow = Chunk
	}
	if o.Overflow != Chunk && o.Overflow != Truncate && o.Overflow != Drop {
		return nil, fmt.Errorf("overflow %q: must be chunk, truncate or drop", o.Overflow)
	}
	if special := len(o.Prefix) + len(o.Suffix); o.MaxLength <= special {
		return nil, &LengthError{o.MaxLength, special}
	}
	return &Cutter{opts: o}, nil
}

// Begin starts a document with the special tokens that open it.
func (c *Cutter) Begin(ordinal int64) {
	c.ordinal, c.part, c.over = ordinal, 0, false
	c.ids = append(c.ids[:0], c.opts.Prefix...)
}

// Add takes the next ids of the document.
func (c *Cutter) Add(ids []uint32, emit func(*Example) error) error {
	if c.opts.Overflow == Chunk {
		return c.chunk(ids, emit)
	}
	room := c.opts.MaxLength - len(c.opts.Suffix) - len(c.ids)
	if len(ids) > room {
		ids, c.over = ids[:room], true
	}
	c.ids = append(c.ids, ids...)
	return nil
}

// End closes the document with its special tokens and emits what is left.
func (c *Cutter) End(emit func(*Example) error) error {
	defer func() { c.ids = c.ids[:0] }()
	if c.part == 0 && len(c.ids) == len(c.opts.Prefix) {
		return nil // no text: special tokens alone teach nothing
	}
	if c.over && c.opts.Overflow == Drop {
		c.dropped++
		return nil
	}
	if err := c.chunk(c.opts.Suffix, emit); err != nil {
		return err
	}
	if len(c.ids) == 0 {
		return nil
	}
	return c.emit(c.ids, nil, emit)
}

// Pair makes one example of a prompt and its target, each with the document's special tokens. Neither is chunked: under Chunk and Truncate both are cut to
// MaxLength, under Drop a pair with either one longer is left out.
func (c *Cutter) Pair(prompt, target []uint32, emit func(*Example) error) error {
	defer func() { c.ids = c.ids[:0] }()
	if len(prompt) == 0 || len(target) == 0 {
		return nil
	}
	room := c.opts.MaxLength - len(c.opts.Prefix) - len(c.opts.Suffix)
	if c.opts.Overflow == Drop && max(len(prompt), len(target)) > room {
		c.dropped++
		return nil
	}
	c.ids = c.surround(c.ids[:0], prompt, room)
	c.target = c.surround(c.target[:0], target, room)
	return c.emit(c.ids, c.target, emit)
}

func (c *Cutter) surround(dst, ids []uint32, room int) []uint32 {
	dst = append(dst, c.opts.Prefix...)
	dst = append(dst, ids[:min(len(ids), room)]...)
	return append(dst, c.opts.Suffix...)
}

// chunk fills examples with ids and emits each that more ids follow or that is full.
func (c *Cutter) chunk(ids []uint32, emit func(*Example) error) error {
	for len(ids) > 0 {
		if len(c.ids) == c.opts.MaxLength {
			if err := c.emit(c.ids, nil, emit); err != nil {
				return err
			}
			c.ids = c.ids[:0]
		}
		n := min(len(ids), c.opts.MaxLength-len(c.ids))
		c.ids = append(c.ids, ids[:n]...)
		ids = ids[n:]
	}
	return nil
}

func (c *Cutter) emit(ids, target []uint32, emit func(*Example) error) error {
	c.example = Example{InputIDs: ids, Labels: target, Document: c.ordinal, Part: c.part}
	c.part++
	return emit(&c.example)
}

// Dropped is the number of documents left out under Drop.
func (c *Cutter) Dropped() int64 { return c.dropped }

// State is a copy of everything that the Cutter knows.
func (c *Cutter) State() State {
	return State{Ordinal: c.ordinal, Part: c.part, Over: c.over, Dropped: c.dropped, IDs: append([]uint32(nil), c.ids...)}
}

// Restore sets the Cutter to a state that State gave under the same options.
func (c *Cutter) Restore(s State) error {
	if len(s.IDs) > c.opts.MaxLength || s.Part < 0 || s.Ordinal < 0 {
		return fmt.Errorf("restore a partial example of %d tokens under a maximum of %d", len(s.IDs), c.opts.MaxLength)
	}
	c.ordinal, c.part, c.over, c.dropped = s.Ordinal, s.Part, s.Over, s.Dropped
	c.ids = append(c.ids[:0], s.IDs...)
	return nil
}

// Reset forgets the document in hand, not the count of dropped ones.
func (c *Cutter) Reset() {
	*c = Cutter{opts: c.opts, ids: c.ids[:0], target: c.target, dropped: c.dropped}
}
