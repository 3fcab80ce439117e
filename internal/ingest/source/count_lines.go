package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// errLongLine means that a line is so long that its framer does not read it as one.
var errLongLine = errors.New("a long line")

// A lineCount counts the lines of text that comes in blocks.
type lineCount struct {
	lines, documents int64
	limit            int64 // longest line whose end decides nothing
	length           int64 // bytes of the unfinished line
	filled           bool  // it holds more than white space
	filledLast       bool  // the line before did
	held             [4]byte
	nHeld            int // bytes of a character at the end of the last block
	long             bool
	ends             [256]int32 // room for those of the block
}

// add takes a block in.
func (c *lineCount) add(p []byte) {
	for len(p) > 0 {
		ends := frame.LineEnds(c.ends[:0], p)
		if len(ends) == 0 {
			c.more(p)
			return
		}
		begin := 0
		for _, end := range ends {
			line := p[begin:end]
			if c.length == 0 { // the usual line is whole in the block
				c.filledLast = !frame.IsBlank(line)
				c.long = c.long || int64(len(line)) > c.limit
			} else {
				c.more(line)
				c.end()
				c.filledLast = c.filled
				c.length, c.filled, c.nHeld = 0, false, 0
			}
			if c.filledLast {
				c.documents++
			}
			begin = int(end) + 1
		}
		c.lines += int64(len(ends))
		p = p[begin:]
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
		if frame.Unfinished(whole) == len(whole) && len(whole) < len(c.held) {
			c.nHeld = len(whole)
			return
		}
		c.nHeld = 0
		// The unfinished end of whole is judged again with the bytes after it.
		if c.filled = !frame.IsBlank(whole[:len(whole)-frame.Unfinished(whole)]); c.filled {
			return
		}
		p = p[max(0, n-frame.Unfinished(whole)):]
	}
	rest := frame.Unfinished(p)
	if c.filled = !frame.IsBlank(p[:len(p)-rest]); !c.filled {
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

// A lineScan counts an input whose documents are lines.
type lineScan struct {
	found *Counted
	cuts  *cutting
	count lineCount
	at    int64 // offset of the next block

	whole, span checksum.Hasher // the first span has no hasher of its own
}

// lineBlock is what is read at once. It is small enough to stay in a core's cache.
const lineBlock = 128 << 10

// countLines reads an input whose documents are lines.
func (s *Set) countLines(ctx context.Context, in *Input, o *CountOptions) (*Counted, error) {
	l := lineScan{found: &Counted{}, cuts: newCutting(in, o.Cuts)}
	l.whole.Reset()
	switch in.Format {
	case Text:
		l.count.limit = math.MaxInt64
	case JSONL:
		l.count.limit = int64(s.opts.LineBytes())
	default:
		l.count.limit = int64(s.opts.MaxRecordBytes)
	}
	fail := func(at int64, err error) (*Counted, error) { return nil, s.inputError(in, at, 0, err) }
	raw, err := openRaw(in, &s.opts)
	if err != nil {
		return fail(0, err)
	}
	defer raw.Close()
	buf := o.Buffer[:min(lineBlock, len(o.Buffer))]
	next := func() ([]byte, error) {
		n, err := decompress.ReadBlock(raw, buf)
		return buf[:n], err
	}
	if raw.concurrent = o.Ahead && (in.Size < 0 || in.Size >= decompress.AheadFrom); raw.concurrent {
		if err := raw.open(); err != nil {
			return fail(0, err)
		}
		next = func() ([]byte, error) { return raw.Next(nil) }
	}
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		block, err := next()
		if err != nil && err != io.EOF {
			return fail(l.at+int64(len(block)), err)
		}
		ended = err == io.EOF
		l.add(block)
		o.Progress(int64(len(block)))
		if l.count.long {
			o.Progress(-l.at) // it is read again
			return nil, errLongLine
		}
	}
	if err := raw.unchanged(); err != nil {
		return fail(l.at, err)
	}
	return l.finish(), nil
}

// add takes a block in: up to each mark, and then what is left of it.
func (l *lineScan) add(block []byte) {
	skipped := 0 // length of a byte order mark
	if l.at == 0 {
		skipped = len(block) - len(bytes.TrimPrefix(block, []byte("\ufeff")))
	}
	from := 0
	for len(l.cuts.cuts) > 0 {
		cut := max(l.cuts.cuts[0]-l.at, int64(from)+1, int64(skipped))
		if cut > int64(len(block)) {
			break
		}
		n := bytes.IndexByte(block[cut-1:], '\n')
		if n < 0 {
			break
		}
		to := int(cut) + n
		l.count.add(block[max(from, skipped):to])
		l.hash(block[from:to])
		if from = to; !l.count.filledLast {
			continue // a reader would pass over a blank line to the next document
		}
		offset := l.at + int64(to)
		l.found.Marks = append(l.found.Marks, Mark{Offset: offset, Row: l.count.lines, Ordinal: l.count.documents})
		l.cuts.taken(offset)
		l.endSpan(offset)
	}
	l.count.add(block[max(from, skipped):])
	l.hash(block[from:])
	l.at += int64(len(block))
}

// hash takes a part of a block into the checksums.
func (l *lineScan) hash(p []byte) {
	l.whole.Write(p)
	if len(l.found.Spans) > 0 {
		l.span.Write(p)
	}
}

func (l *lineScan) endSpan(to int64) {
	c, from, sum := l.found, int64(0), l.whole.Sum()
	if n := len(c.Spans); n > 0 {
		from, sum = c.Spans[n-1].To, l.span.Sum()
	}
	c.Spans = append(c.Spans, Span{From: from, To: to, Sum: sum})
	l.span.Reset()
}

// finish ends the last line and the last span.
func (l *lineScan) finish() *Counted {
	l.count.finish()
	c := l.found
	c.Documents, c.done = l.count.documents, Finished{Bytes: l.at, Sum: l.whole.Sum()}
	l.endSpan(l.at)
	c.dropLast(l.at)
	return c
}
