package frame

import "io"

// A spanner finds the end of the document in which the window begins.
type spanner interface {
	// span looks for the end within the first n bytes. Where it is there, text is the length of
	// what is left of the document, total that with the separator after it; else both are n. At the
	// end of the input, total is 0 if nothing is left.
	span(n int) (text, total int, end bool, err error)
	// advance is called before bytes are consumed.
	advance(data []byte)
}

// cuttable frames formats whose documents may be delivered in pieces.
type cuttable struct {
	framing
	Stateless
	spanner
	blankRows bool // documents of white space only are not documents, but count as rows
}

func (f *cuttable) Next(dst []byte, rec *Record) ([]byte, error) {
	for {
		text, total, end, err := f.span(f.o.PieceBytes)
		if err != nil {
			return dst, err
		}
		if total == 0 && end && !f.Inside {
			return dst, io.EOF
		}
		if !f.Inside {
			data := f.w.Unread()[:text]
			if !end {
				data = data[:text-Unfinished(data)] // at least 13 bytes are left
			}
			if IsBlank(data) {
				// A longer run of white space than a piece is dropped a piece at a time: nothing
				// can be held until its end is known.
				if !end {
					total = len(data)
				} else if f.blankRows {
					f.Row++
				}
				f.consume(total)
				continue
			}
		}
		rec.Offset, rec.First, rec.Decoded = f.w.Offset(), !f.Inside, true
		if !end && f.o.Whole {
			return dst, f.reject(rec)
		}
		if !end {
			if text, total, end, rec.Forced, err = f.cut(); err != nil {
				return dst, err
			}
		}
		dst = append(dst, f.w.Unread()[:text]...)
		f.consume(total)
		rec.Last, f.Inside = end, !end
		return dst, nil
	}
}

// cut finds the end of the next piece of a document that is longer than one.
func (f *cuttable) cut() (text, total int, end, forced bool, err error) {
	for n := f.o.PieceBytes; ; n = min(2*n, f.o.MaxPieceBytes) {
		if text, total, end, err = f.span(n); err != nil || end {
			return text, total, end, false, err
		}
		if c, forced := f.o.CutPiece(f.w.Unread()[:n], n); c > 0 {
			return c, c, false, forced, nil
		}
	}
}

// reject skips a document that is too large where only whole ones are wanted.
func (f *cuttable) reject(rec *Record) error {
	rec.Err, rec.Last = TooLarge(f.o.MaxRecordBytes), true
	for {
		_, total, end, err := f.span(f.o.PieceBytes)
		if err != nil {
			return err
		}
		f.consume(total)
		if end {
			return nil
		}
	}
}

func (f *cuttable) consume(n int) {
	f.advance(f.w.Unread()[:n])
	f.w.Consume(n)
}

// lines frames text with one document on each line.
type lines struct{ *framing }

func (l lines) advance([]byte) {}

func (l lines) span(n int) (text, total int, end bool, err error) {
	at, found, ended, err := l.line(0, n+2) // the text and its line end
	if err != nil {
		return 0, 0, false, err
	}
	text, total = at, at
	if found {
		total++
		if at > 0 && l.w.Unread()[at-1] == '\r' {
			text--
		}
	}
	if (found || ended) && text <= n {
		return text, total, true, nil
	}
	return n, n, false, nil
}

// files frames each file as one document.
type files struct{ *framing }

func (d files) advance([]byte) {}

func (d files) span(n int) (text, total int, end bool, err error) {
	if d.w.Need(n + 1) {
		return n, n, false, nil
	}
	left := len(d.w.Unread())
	if left > n {
		return n, n, false, nil // the window ended in an error, or held it already
	}
	return left, left, true, d.w.Failed()
}

// NewText returns the framer of text with one document on each line.
func NewText(w *Window, o *Options) (Framer, error) {
	c := &cuttable{framing: framing{w: w, o: o}, blankRows: true}
	c.spanner = lines{&c.framing}
	return textLines{c}, nil
}

// textLines is what frames lines of text.
type textLines struct{ *cuttable }

func (f textLines) Run(dst []byte, full int, ends []int32, rec *Record) ([]byte, []int32) {
	rec.Offset, rec.First, rec.Last, rec.Decoded = f.w.Offset(), true, true, true
	return f.run(dst, full, ends, f.o.PieceBytes, false)
}

// NewDocument returns the framer of a file that is one document.
func NewDocument(w *Window, o *Options) (Framer, error) {
	c := &cuttable{framing: framing{w: w, o: o}}
	c.spanner = files{&c.framing}
	return c, nil
}
