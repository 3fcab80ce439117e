package frame

import (
	"bytes"
)

// WikiText's articles begin with a heading of level one, a line " = Title = "; subsections, " = =
// Title = = ", stay inside. A paragraph can contain lines that look like a heading (a formula set
// over three lines), so what surrounds a line counts too:
//
//   - A candidate is a line of at most MaxHeadingBytes whose text, without white space around it,
//   begins with "= ", ends with " =", and has something
//     between that neither begins nor ends with "=".
//   - It is a heading if the line before it and the line after it are blank (white space only, or
//   the input's beginning or end).
//   - The first line of an input that is not blank decides how the file is laid out, if it is a
//   candidate: where no blank line stands before it, headings
//     need none before them, and where none follows it, they need none after them.
//
// An article is the bytes from its heading to the next, unchanged. What comes before the first
// heading is a document of its own unless it is blank.

// MaxHeadingBytes is the longest heading, and the longest blank line next to one.
const MaxHeadingBytes = 4 << 10

// articles is the spanner of WikiText.
type articles struct {
	*framing
	lineBlank bool // the line in which the window begins is blank up to there
	// The layout, once decided:
	decided, needPrev, needNext bool
}

// NewWikiText returns the framer of WikiText.
func NewWikiText(w *Window, o *Options) (Framer, error) {
	c := &wikiFramer{pieces: cuttable{framing: framing{w: w, o: o}}}
	c.articles = articles{framing: &c.pieces.framing, lineBlank: true}
	c.framing, c.pieces.spanner = &c.pieces.framing, &c.articles
	return c, nil
}

type wikiFramer struct {
	*framing
	pieces   cuttable
	articles articles
}

func (f *wikiFramer) Next(dst []byte, rec *Record) ([]byte, error) {
	if !f.articles.decided {
		if err := f.articles.decide(); err != nil {
			return dst, err
		}
	}
	return f.pieces.Next(dst, rec)
}

// State has two bits that only earlier versions wrote.
func (f *wikiFramer) State() (s uint32) {
	a := &f.articles
	for i, b := range []bool{false, a.lineBlank, false, a.decided, a.needPrev, a.needNext} {
		if b {
			s |= 1 << i
		}
	}
	return s
}

func (f *wikiFramer) Restore(s uint32) {
	a, unused := &f.articles, false
	for i, b := range []*bool{&unused, &a.lineBlank, &unused, &a.decided, &a.needPrev, &a.needNext} {
		*b = s&(1<<i) != 0
	}
}

// decide looks at the first line that is not blank.
func (a *articles) decide() error {
	a.decided, a.needPrev, a.needNext = true, true, true
	for p := 0; p < a.o.PieceBytes; {
		line, next, ok, err := a.lineAt(p)
		if err != nil || !ok {
			return err
		}
		if IsBlank(line) {
			if next == p {
				return nil // the end of the input
			}
			p = next
			continue
		}
		if isCandidate(line) {
			following, _, ok, err := a.lineAt(next)
			if err != nil {
				return err
			}
			a.needPrev, a.needNext = p > 0, ok && IsBlank(following)
		}
		return nil
	}
	return nil
}

// lineAt returns the line at p of the window without its "\n", and where the next begins. ok is
// false if it is longer than MaxHeadingBytes.
func (a *articles) lineAt(p int) (line []byte, next int, ok bool, err error) {
	n, found, ended, err := a.line(p, p+MaxHeadingBytes)
	if err != nil || !found && !ended {
		return nil, 0, false, err
	}
	next = n
	if found {
		next++
	}
	return a.w.Unread()[p:n], next, true, nil
}

func (a *articles) span(n int) (text, total int, end bool, err error) {
	prevBlank, p := false, 0
	for first := true; ; first = false {
		if !first {
			heading, err := a.heading(p, prevBlank)
			if err != nil {
				return 0, 0, false, err
			}
			if heading {
				return p, p, true, nil
			}
		}
		at, found, ended, err := a.line(p, n+1) // the line end may follow
		if err != nil {
			return 0, 0, false, err
		}
		if ended {
			return at, at, true, nil
		}
		if !found || at >= n {
			return n, n, false, nil
		}
		blank := IsBlank(a.w.Unread()[p:at])
		if first {
			blank = blank && a.lineBlank
		}
		prevBlank, p = blank, at+1
	}
}

// heading reports whether an article begins at p, the beginning of a line.
func (a *articles) heading(p int, prevBlank bool) (bool, error) {
	if a.needPrev && !prevBlank {
		return false, nil
	}
	if a.w.Need(p + 3) {
		if first := a.w.Unread()[p]; first != '=' && !IsASCIISpace(first) {
			return false, nil // most lines are spared the search for their end
		}
	}
	line, next, ok, err := a.lineAt(p)
	if err != nil || !ok || !isCandidate(line) {
		return false, err
	}
	if !a.needNext {
		return true, nil
	}
	following, _, ok, err := a.lineAt(next)
	return ok && IsBlank(following), err
}

func isCandidate(line []byte) bool {
	line = bytes.TrimFunc(line, isSpaceRune)
	if len(line) < len("= x =") || line[0] != '=' || line[1] != ' ' || line[len(line)-1] != '=' ||
		line[len(line)-2] != ' ' {
		return false
	}
	title := bytes.TrimFunc(line[1:len(line)-1], isSpaceRune)
	return len(title) > 0 && title[0] != '=' && title[len(title)-1] != '='
}

func isSpaceRune(r rune) bool { return r < 0x80 && IsASCIISpace(byte(r)) }

// advance keeps track of the line before the window.
func (a *articles) advance(data []byte) {
	last := bytes.LastIndexByte(data, '\n')
	a.lineBlank = (a.lineBlank || last >= 0) && IsBlank(data[last+1:])
}

// IsWikiText reports whether the first line that is not blank is a heading with a blank line after
// it.
func IsWikiText(text []byte) bool {
	for len(text) > 0 {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !IsBlank(line) {
			next, _, _ := bytes.Cut(rest, []byte("\n"))
			return found && len(line) <= MaxHeadingBytes && isCandidate(line) && len(rest) > 0 && IsBlank(next)
		}
		text = rest
	}
	return false
}
