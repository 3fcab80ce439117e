package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/zeebo/xxh3"
)

// Counted is what a plan needs to know about an input.
type Counted struct {
	Documents int64
	// Marks are the first places between two documents at or after the wanted offsets, except any
	// after the last document. Their ordinals count from the input's first document.
	Marks []Mark
	// Spans are the stretches between the marks; nil where the input was not read.
	Spans []Span
	// Tail is the checksum of the end of a file of columns.
	Tail Sum

	done     Finished
	trailing *Trailing
	members  *Members
}

// CountOptions says what Count should find.
type CountOptions struct {
	// Cuts are the offsets near which marks are wanted. They rise.
	Cuts []int64
	// Buffer is CountBytes long.
	Buffer []byte
	// Progress is called with numbers of stored bytes that were read, or need not be.
	Progress func(n int64)
}

// Count counts the documents of the i-th input. Files of columns are not read for it, other inputs
// are read once. It may be called by several goroutines at once, each with a buffer of its own.
func (s *Set) Count(ctx context.Context, i int, o CountOptions) (*Counted, error) {
	in, err := s.inputForCount(i)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Format.isColumnar() && !s.opts.SkipDamaged: // where damage is a record, rows must be read
		c, err := s.countTable(&in, newCutting(&in, o.Cuts))
		o.Progress(max(0, in.Size))
		return c, err
	case countsLines(&in):
		c, err := s.countLines(ctx, &in, &o)
		if err == nil || !errors.Is(err, errLongLine) {
			return c, err
		}
	}
	return s.countRecords(ctx, &in, &o)
}

// CountBytes is the buffer of Count.
const CountBytes = 1 << 20

// inputForCount is Input for several goroutines.
func (s *Set) inputForCount(i int) (Input, error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	return s.list.at(i)
}

// countTable takes the rows of each group from the file's metadata.
func (s *Set) countTable(in *Input, cuts *cutting) (*Counted, error) {
	fail := func(err error) (*Counted, error) {
		if in.store != nil {
			err = remoteError(in.URI, -1, err)
		}
		var located *InputError
		var changed *SourceChangedError
		if errors.As(err, &located) || errors.As(err, &changed) {
			return nil, err
		}
		return nil, &InputError{URI: in.URI, Offset: -1, Err: err}
	}
	raw, err := openRaw(in, &s.opts)
	if err != nil {
		return fail(err)
	}
	defer raw.Close()
	file, err := openTable(in, &s.opts, raw)
	if err != nil {
		return fail(err)
	}
	c := &Counted{}
	if c.Tail, err = tailSum(raw); err != nil {
		return fail(err)
	}
	at := int64(len("PAR1"))
	for g := range file.Groups() {
		if g > 0 && cuts.due(at) {
			c.Marks = append(c.Marks, Mark{Offset: at, Row: c.Documents, Ordinal: c.Documents})
			cuts.taken(at)
		}
		at += file.GroupBytes(g)
		c.Documents += file.Rows(g)
	}
	return c, nil
}

// A cutting holds the cuts of an input for which no mark was found yet.
type cutting struct {
	cuts []int64 // without a mark yet
	size int64   // of the input
}

func newCutting(in *Input, cuts []int64) *cutting {
	return &cutting{cuts: slices.Clone(cuts), size: max(in.Size, in.textBytes)}
}

// due reports whether a mark is wanted at an offset, or before.
func (c *cutting) due(offset int64) bool { return len(c.cuts) > 0 && offset >= c.cuts[0] }

// taken notes a mark. If it lies after the next cuts too, these are spread over the rest of the
// input.
func (c *cutting) taken(offset int64) {
	c.cuts = c.cuts[1:]
	if n := int64(len(c.cuts)); n > 0 && c.cuts[0] <= offset {
		for i := range c.cuts {
			c.cuts[i] = offset + max(0, c.size-offset)*int64(i+1)/(n+1) + 1
		}
	}
}

// countRecords reads the records of an input.
func (s *Set) countRecords(ctx context.Context, in *Input, o *CountOptions) (*Counted, error) {
	cuts := newCutting(in, o.Cuts)
	one := &Set{opts: s.opts, filter: s.filter, formats: map[Format]int{}, store: s.store, only: &Range{Inputs: []Listed{{}}},
		list: inputList{few: []Input{*in}}, total: in.Size}
	if err := one.makeParts([]listing{{uri: in.URI, n: 1}}); err != nil {
		return nil, err
	}
	r, err := one.Reader(Position{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.NoteSpans()
	c := &Counted{}
	var rec Record
	var data []byte
	var told int64
	for n := 0; ; n++ {
		if n%1024 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			read, _ := r.Progress()
			o.Progress(read - told)
			told = read
		}
		if cap(data) > CountBytes {
			data = nil // of one long record
		}
		if at, ok := r.Border(); ok && n > 0 && cuts.due(at) {
			r.EndSpan()
			c.Marks = append(c.Marks, Mark{Offset: at, Row: r.open.row, Ordinal: r.at.Ordinal, State: r.open.state()})
			cuts.taken(at)
		}
		if data, err = r.Next(data[:0], &rec); err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	at := r.Position()
	c.Documents, c.done, c.trailing, c.members = at.Ordinal, at.Done[0], at.Trailing, at.Members
	if c.Spans = r.Spans(); in.OffsetsAreBytes() && in.synth == nil {
		c.dropLast(in.Size)
	}
	return c, nil
}

// dropLast leaves out the marks at the end of the input: nothing comes after them.
func (c *Counted) dropLast(size int64) {
	for n := len(c.Marks); n > 0 && c.Marks[n-1].Offset >= size; n-- {
		c.Marks = c.Marks[:n-1]
	}
	if n := len(c.Spans); n > 1 && c.Spans[n-1].From >= size {
		c.Spans = c.Spans[:n-1]
	}
}

// countsLines reports whether the documents of an input are its lines that are not blank.
func countsLines(in *Input) bool {
	if in.Compression != Plain || in.archive != "" || in.synth != nil || in.once != nil {
		return false
	}
	return in.Format == Text || in.Format == JSONL || in.Format == Chat
}

// errLongLine means that a line is so long that its framer does not read it as one.
var errLongLine = errors.New("a long line")

// A lineCount counts the lines of text that comes in blocks.
type lineCount struct {
	lines, documents int64
	limit            int64 // longest line that may be counted
	length           int64 // of the line that goes on
	filled           bool  // it holds more than white space
	filledLast       bool  // the line before did
	held             [4]byte
	nHeld            int // bytes of a character at the end of the last block
	long             bool
}

// add takes a block in.
func (c *lineCount) add(p []byte) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			c.more(p)
			return
		}
		if c.length == 0 {
			// The usual line: whole in the block, and with a letter at its beginning.
			c.filledLast = n > 0 && p[0] > ' ' && p[0] < 0x80 || !isBlank(p[:n])
			c.long = c.long || int64(n) > c.limit
		} else {
			c.more(p[:n])
			c.end()
			c.filledLast = c.filled
		}
		c.lines++
		if c.filledLast {
			c.documents++
		}
		c.length, c.filled, c.nHeld = 0, false, 0
		p = p[n+1:]
	}
}

// more takes a part of a line in, which may end within a character.
func (c *lineCount) more(p []byte) {
	c.length += int64(len(p))
	c.long = c.long || c.length > c.limit
	if c.filled || len(p) == 0 {
		return
	}
	if c.nHeld > 0 { // complete the character
		n := copy(c.held[c.nHeld:], p)
		whole := c.held[:c.nHeld+n]
		if unfinished(whole) == len(whole) && len(whole) < len(c.held) {
			c.nHeld = len(whole)
			return
		}
		c.nHeld = 0
		// The unfinished end of whole is judged again with the bytes after it.
		if c.filled = !isBlank(whole[:len(whole)-unfinished(whole)]); c.filled {
			return
		}
		p = p[max(0, n-unfinished(whole)):]
	}
	rest := unfinished(p)
	if c.filled = !isBlank(p[:len(p)-rest]); !c.filled {
		c.nHeld = copy(c.held[:], p[len(p)-rest:])
	}
}

// end judges what is held at the end of a line.
func (c *lineCount) end() {
	if c.nHeld > 0 {
		c.filled = true // a character that is not whole
	}
}

// finish ends the last line.
func (c *lineCount) finish() {
	if c.length > 0 {
		if c.end(); c.filled {
			c.documents++
		}
		c.lines++
	}
}

// countLines reads an input whose documents are lines.
func (s *Set) countLines(ctx context.Context, in *Input, o *CountOptions) (*Counted, error) {
	cuts, buf := newCutting(in, o.Cuts), o.Buffer
	fail := func(at int64, err error) (*Counted, error) {
		r := Reader{in: *in, set: s, open: &stream{}}
		r.win.base = at
		return nil, r.inputError(err)
	}
	raw, err := openRaw(in, &s.opts)
	if err != nil {
		return fail(0, err)
	}
	defer raw.Close()
	c := &Counted{}
	count := lineCount{limit: lineLimit(in, &s.opts)}
	var whole, span xxh3.Hasher
	endSpan := func(to int64) {
		from := int64(0)
		if n := len(c.Spans); n > 0 {
			from = c.Spans[n-1].To
		}
		c.Spans = append(c.Spans, Span{From: from, To: to, Sum: hasherSum(&span)})
		span.Reset()
	}
	at, begun := int64(0), false
	filled := 0
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := raw.Read(buf[filled:])
		if filled += n; err != nil && err != io.EOF {
			return fail(at+int64(filled), err)
		}
		ended = err == io.EOF
		if filled < len(buf) && !ended {
			continue
		}
		block := buf[:filled]
		filled = 0
		whole.Write(block)
		text := block
		if !begun {
			begun, text = true, bytes.TrimPrefix(block, []byte("\ufeff"))
		}
		skipped := len(block) - len(text)
		// The block is counted up to each mark, and then what is left of it.
		from := 0
		for len(cuts.cuts) > 0 {
			cut := max(cuts.cuts[0]-at, int64(from)+1, int64(skipped))
			if cut > int64(len(block)) {
				break
			}
			n := bytes.IndexByte(block[cut-1:], '\n')
			if n < 0 {
				break
			}
			to := int(cut) + n
			count.add(block[max(from, skipped):to])
			span.Write(block[from:to])
			if from = to; !count.filledLast {
				continue // a reader would pass over a blank line to the next document
			}
			c.Marks = append(c.Marks, Mark{Offset: at + int64(to), Row: count.lines, Ordinal: count.documents})
			cuts.taken(at + int64(to))
			endSpan(at + int64(to))
		}
		count.add(block[max(from, skipped):])
		if len(o.Cuts) > 0 {
			span.Write(block[from:])
		}
		at += int64(len(block))
		o.Progress(int64(len(block)))
		if count.long {
			o.Progress(-at) // it is read again
			return nil, errLongLine
		}
	}
	count.finish()
	if err := raw.unchanged(); err != nil {
		return fail(at, err)
	}
	c.Documents, c.done = count.documents, Finished{Bytes: at, Sum: hasherSum(&whole)}
	if len(o.Cuts) == 0 {
		c.Spans = []Span{{To: at, Sum: c.done.Sum}}
	} else {
		endSpan(at)
	}
	c.dropLast(at)
	return c, nil
}

// lineLimit returns the longest line whose end decides nothing.
func lineLimit(in *Input, o *Options) int64 {
	switch {
	case in.Format == Text:
		return 1 << 62
	case in.Format == JSONL && o.TextField != "":
		return int64(o.MaxPieceBytes)
	}
	return int64(o.MaxRecordBytes)
}
