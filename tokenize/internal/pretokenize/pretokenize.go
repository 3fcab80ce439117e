// Package pretokenize implements the pre-tokenizers of Hugging Face tokenizers: steps that cut a
// normalized segment into pieces, which the model then encodes one by one. A step may also rewrite
// the text (ByteLevel, Metaspace).
//
//	I1  A step handles each piece alone; no result depends on another piece.
//	I2  No piece is empty.
package pretokenize

import (
	"bytes"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/normalize"
)

// Span is a piece of a text.
type Span struct{ Start, End int }

// Pieces is a text cut into pieces. Zero is the number of leading bytes of Text that come from the
// first character of the document.
type Pieces struct {
	Text  []byte
	Spans []Span
	Zero  int
}

// Step is one pre-tokenizer: it cuts (and rewrites) in into out, whose content it replaces.
// out.Text may alias in.Text.
type Step interface {
	Cut(in, out *Pieces)
}

// Sequence applies steps one after the other.
type Sequence []Step

// Scratch is one goroutine's buffers.
type Scratch struct {
	a, b Pieces
	bufs [2][]byte
}

// maxKept is the size in bytes above which scratch buffers are dropped after use.
const maxKept = 1 << 20

// Apply cuts text. The result is valid until the next call.
func (s *Scratch) Apply(steps Sequence, text []byte, zero int) *Pieces {
	if cap(s.a.Spans) > maxKept/16 && len(text) < maxKept/16 {
		*s = Scratch{}
	}
	in, out := &s.a, &s.b
	in.Text, in.Zero = text, zero
	in.Spans = append(in.Spans[:0], Span{0, len(text)})
	if len(text) == 0 {
		in.Spans = in.Spans[:0]
	}
	free := 0 // the buffer that does not hold in.Text
	for _, step := range steps {
		out.Text = s.bufs[free][:0]
		out.Spans = out.Spans[:0]
		out.Zero = in.Zero
		_, writes := step.(rewriter)
		if writes {
			out.Zero = 0
		}
		step.Cut(in, out)
		if writes {
			s.bufs[free] = out.Text
			free ^= 1
		}
		in, out = out, in
	}
	return in
}

// rewriter is a Step that writes new text to out.Text, which is empty at first, and sets out.Zero,
// which is 0 at first.
type rewriter interface{ rewrites() }

func (p *Pieces) add(start, end int) {
	if start < end {
		p.Spans = append(p.Spans, Span{start, end})
	}
}

// Behavior says what happens to the matches of a pattern.
type Behavior uint8

const (
	Removed Behavior = iota
	Isolated
	MergedWithPrevious
	MergedWithNext
	Contiguous
)

// collector turns a stream of matches and the text between them into pieces. Hugging Face folds
// over the list; the collector folds as elements arrive. There MergedWithNext folds from the right;
// here a match is held back until the next element is known, and of several matches in a row only
// the last is merged, which gives the same pieces.
type collector struct {
	out      *Pieces
	behavior Behavior
	previous bool // the last element was a match
	any      bool // there was an element
	start    int  // where the piece being built begins
	end      int
}

func (c *collector) begin(out *Pieces, b Behavior) { *c = collector{out: out, behavior: b} }

func (c *collector) element(start, end int, match bool) {
	switch c.behavior {
	case Removed:
		if !match {
			c.out.add(start, end)
		}
		return
	case Isolated:
		c.out.add(start, end)
		return
	}
	join := c.any
	switch c.behavior {
	case Contiguous:
		join = join && match == c.previous
	case MergedWithPrevious:
		join = join && match && !c.previous
	case MergedWithNext:
		join = join && !match && c.previous
	}
	if !join {
		c.finish()
		c.start = start
	}
	c.end, c.any, c.previous = end, true, match
}

func (c *collector) finish() {
	if c.any {
		c.out.add(c.start, c.end)
	}
	c.any = false
}

// classSplit splits at each character of a class.
type classSplit struct {
	is       func(r rune) bool
	behavior Behavior
}

// Cut implements Step.
func (s classSplit) Cut(in, out *Pieces) {
	out.Text = in.Text
	var c collector
	for _, p := range in.Spans {
		c.begin(out, s.behavior)
		text, last := in.Text[:p.End], p.Start
		for i := p.Start; i < p.End; {
			r, n := rune(text[i]), 1
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRune(text[i:])
			}
			if s.is(r) {
				if last < i {
					c.element(last, i, false)
				}
				c.element(i, i+n, true)
				last = i + n
			}
			i += n
		}
		if last < p.End {
			c.element(last, p.End, false)
		}
		c.finish()
	}
}

func class(c charclass.Class) func(rune) bool {
	t := charclass.Classes()
	return func(r rune) bool { return t.Is(r, c) }
}

// Cut keeps the matches of \w+|[^\w\s]+ and drops everything else.
func (Whitespace) Cut(in, out *Pieces) {
	t := charclass.Classes()
	out.Text = in.Text
	for _, p := range in.Spans {
		start, kind := p.Start, 0
		for i := p.Start; i < p.End; {
			r, n := utf8.DecodeRune(in.Text[i:p.End])
			k := 2
			switch {
			case t.Is(r, charclass.Word):
				k = 1
			case t.Is(r, charclass.Whitespace):
				k = 0
			}
			if k != kind {
				if kind != 0 {
					out.add(start, i)
				}
				start, kind = i, k
			}
			i += n
		}
		if kind != 0 {
			out.add(start, p.End)
		}
	}
}

// Cut implements Step.
func (s Split) Cut(in, out *Pieces) {
	out.Text = in.Text
	var c collector
	for _, p := range in.Spans {
		c.begin(out, s.Behavior)
		text, last := in.Text[p.Start:p.End], 0
		normalize.Matches(s.Pattern, text, func(start, end int) {
			if last < start {
				c.element(p.Start+last, p.Start+start, s.Invert)
			}
			c.element(p.Start+start, p.Start+end, !s.Invert)
			last = end
		})
		if last < len(text) {
			c.element(p.Start+last, p.End, s.Invert)
		}
		c.finish()
	}
}

// Cut implements Step.
func (f FixedLength) Cut(in, out *Pieces) {
	out.Text = in.Text
	for _, p := range in.Spans {
		start, count := p.Start, 0
		for i := p.Start; i < p.End; {
			_, size := utf8.DecodeRune(in.Text[i:p.End])
			i += size
			if count++; count == f.Length {
				out.add(start, i)
				start, count = i, 0
			}
		}
		out.add(start, p.End)
	}
}

// Cut implements Step.
func (UnicodeScripts) Cut(in, out *Pieces) {
	out.Text = in.Text
	for _, p := range in.Spans {
		start, last := -1, uint8(0)
		for i := p.Start; i < p.End; {
			r, n := utf8.DecodeRune(in.Text[i:p.End])
			if k := charclass.Script(r); k != 0 {
				if k != last {
					if start >= 0 {
						out.add(start, i)
					}
					start, last = i, k
				}
			}
			i += n
		}
		if start >= 0 {
			out.add(start, p.End)
		}
	}
}

type byteLevel struct{}

func (byteLevel) rewrites() {}

func (byteLevel) Cut(in, out *Pieces) {
	for _, p := range in.Spans {
		start := len(out.Text)
		for i, c := range in.Text[p.Start:p.End] {
			out.Text = append(out.Text, charclass.ByteChar(c)...)
			if p.Start+i < in.Zero {
				out.Zero = len(out.Text)
			}
		}
		out.add(start, len(out.Text))
	}
}

type prefixSpace struct{}

func (prefixSpace) rewrites() {}

func (prefixSpace) Cut(in, out *Pieces) {
	for _, p := range in.Spans {
		start := len(out.Text)
		if in.Text[p.Start] != ' ' {
			out.Text = append(out.Text, ' ')
		}
		head := len(out.Text)
		out.Text = append(out.Text, in.Text[p.Start:p.End]...)
		if p.Start < in.Zero {
			out.Zero = head + min(p.End, in.Zero) - p.Start
		}
		out.add(start, len(out.Text))
	}
}

// Prepend says before which pieces Metaspace puts its replacement.
type Prepend uint8

const (
	PrependAlways Prepend = iota
	PrependFirst
	PrependNever
)

func (Metaspace) rewrites() {}

// Cut implements Step.
func (m Metaspace) Cut(in, out *Pieces) {
	replacement := []byte(string(m.Replacement))
	for _, p := range in.Spans {
		start := len(out.Text)
		text := in.Text[p.Start:p.End]
		starts := text[0] == ' ' || bytes.HasPrefix(text, replacement)
		if !starts && (m.Prepend == PrependAlways || m.Prepend == PrependFirst && p.Start < in.Zero) {
			out.Text = append(out.Text, replacement...)
		}
		piece := start
		for i := 0; i < len(text); {
			if p.Start+i == in.Zero && i > 0 {
				out.Zero = len(out.Text)
			}
			n := 1
			if text[i] == ' ' {
				piece = m.cutAt(out, piece)
				out.Text = append(out.Text, replacement...)
			} else if bytes.HasPrefix(text[i:], replacement) {
				piece = m.cutAt(out, piece)
				out.Text = append(out.Text, replacement...)
				n = len(replacement)
			} else {
				out.Text = append(out.Text, text[i])
			}
			i += n
		}
		if p.Start < in.Zero && in.Zero >= p.End {
			out.Zero = len(out.Text)
		}
		out.add(piece, len(out.Text))
	}
}

// cutAt ends a piece before a replacement.
func (m Metaspace) cutAt(out *Pieces, piece int) int {
	if !m.Split {
		return piece
	}
	out.add(piece, len(out.Text))
	return len(out.Text)
}

// Cut implements Step.
func (b BeforeWords) Cut(in, out *Pieces) {
	mark := []byte(string(b.Mark))
	out.Text = in.Text
	for _, p := range in.Spans {
		start, marked := p.Start, true
		for i := p.Start; i < p.End; {
			if bytes.HasPrefix(in.Text[i:p.End], mark) {
				if !marked {
					out.add(start, i)
					start = i
				}
				marked = true
				i += len(mark)
				continue
			}
			marked = false
			i++
		}
		out.add(start, p.End)
	}
}
