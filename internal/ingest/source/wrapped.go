package source

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Text is read by lines, and text in which a line is only a part of a document is common: prose that
// was broken at a width, code, poems. Such text is recognized by what a document on a line does not have:
// lines after which a sentence continues, in paragraphs or all about as long; indented lines.

const (
	// wrappedBytes of a text show how it is written. In a folder of small files, all of them would take as long
	// as their ids.
	wrappedBytes    = 8 << 10
	minWrappedLines = 4   // fewer show nothing
	widestWrapped   = 200 // characters; where more lines are longer, they are documents
	narrowestWidth  = 40  // of lines that were broken at a width
)

// A textLine is what wrapping leaves of a line.
type textLine struct {
	chars, first int    // characters of the line and of its first word
	word         []byte // the first one, in the text
	indented     bool
	lower        bool // begins in lower case, or in a script without cases
	ended        bool // ends as a sentence does
	inner        bool // a sentence ends within it
	words        int
	ideographic  bool
	afterBlank   bool
}

// looksWrapped reports whether the first lines of text look like parts of documents. whole reports that text is
// all there is.
func looksWrapped(text []byte, whole bool) bool {
	if len(text) > wrappedBytes {
		text, whole = text[:wrappedBytes], false
	}
	if end := bytes.LastIndexByte(text, '\n'); !whole && end >= 0 {
		text = text[:end]
	}
	lines := make([]textLine, 0, bytes.Count(text, []byte{'\n'})+1)
	blank := true
	for line := range bytes.Lines(text) {
		if isBlank(line) {
			blank = true
			continue
		}
		l := parseLine(bytes.TrimRight(line, " \t\r\n"))
		l.afterBlank = blank
		lines, blank = append(lines, l), false
	}
	if len(lines) < minWrappedLines {
		return false
	}
	return looksIndented(lines) || looksBroken(lines)
}

func parseLine(line []byte) (l textLine) {
	body := bytes.TrimLeft(line, " \t")
	lead := line[:len(line)-len(body)]
	l.indented = len(lead) > 1 || bytes.IndexByte(lead, '\t') >= 0
	l.chars = utf8.RuneCount(line)
	for word := range bytes.FieldsSeq(body) {
		if l.words++; l.words == 1 {
			l.word = word
		}
		l.inner = l.inner || l.ended // the word before
		l.ended = endsSentence(word)
	}
	first, _ := utf8.DecodeRune(body)
	l.lower = unicode.IsLower(first) || unicode.Is(unicode.Lo, first)
	if l.first = utf8.RuneCount(l.word); isIdeographic(first) {
		l.ideographic, l.first, l.words = true, 1, max(l.words, l.chars/2)
	}
	return l
}

// endsSentence reports whether a word ends as the last one of a sentence does. Nearly all words end in ASCII,
// which needs no tables.
func endsSentence(word []byte) bool {
	switch c := word[len(word)-1]; c {
	case '.', '!', '?', ':', ';':
		return true
	case '"', '\'', ')', ']', '}', '*', '_':
	default:
		if c < utf8.RuneSelf {
			return false
		}
	}
	word = bytes.TrimRightFunc(word, func(r rune) bool {
		return r == '"' || r == '\'' || r == ')' || r == ']' || r == '*' || r == '_' ||
			unicode.In(r, unicode.Pf, unicode.Pe)
	})
	last, _ := utf8.DecodeLastRune(word)
	return unicode.Is(unicode.Sentence_Terminal, last) || last == '…' || last == ':' || last == ';'
}

// areSentences reports whether half of the lines of text end as sentences do, and as code does not.
func areSentences(text []byte) bool {
	lines, ended := 0, 0
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) == 0 {
			continue
		}
		lines++
		if last := words[len(words)-1]; endsSentence(last) && !bytes.ContainsAny(last[len(last)-1:], ":;)]*_'") {
			ended++
		}
	}
	return 2*ended > lines
}

// isIdeographic reports whether a character is of a script that is written without spaces.
func isIdeographic(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// looksIndented reports whether some lines are indented and others not, as in code.
func looksIndented(lines []textLine) bool {
	indented, long := 0, 0
	for i := range lines {
		if lines[i].indented {
			indented++
		}
		if lines[i].chars > widestWrapped {
			long++
		}
	}
	return 7*indented >= len(lines) && 20*indented <= 19*len(lines) && 20*long <= len(lines)
}

// looksBroken reports whether sentences continue after the ends of lines.
func looksBroken(lines []textLine) bool {
	widths := make([]int, len(lines))
	for i := range lines {
		widths[i] = lines[i].chars
	}
	slices.Sort(widths)
	width := widths[(len(widths)-1)*49/50]
	if width > widestWrapped {
		return false
	}
	pairs, unended, lower, full, same, inner, words, sentences := 0, 0, 0, 0, 0, 0, 0, 0
	for i := range lines {
		words += lines[i].words
		if lines[i].inner {
			inner++
		}
		if lines[i].inner || lines[i].ended || lines[i].ideographic {
			sentences++
		}
		if i == 0 || lines[i].afterBlank {
			continue
		}
		before, l := &lines[i-1], &lines[i]
		pairs++
		if !before.ended {
			unended++
		}
		if l.lower {
			lower++
		}
		if before.chars+1+l.first > width {
			full++
		}
		if bytes.Equal(before.word, l.word) {
			same++
		}
	}
	paragraphs := len(lines) - pairs
	if 2*unended < pairs || 2*pairs < len(lines) || words < 2*len(lines) {
		return false
	}
	switch {
	case paragraphs >= 3 && len(lines) <= 20*paragraphs: // of some lines each, as documents on lines have none
		return true
	case 10*inner >= len(lines) && 5*lower >= 2*pairs: // sentences end within lines, and continue after them
		return true
	}
	// The next word had no room, and the lines are not a template.
	return width >= narrowestWidth && 5*full >= 3*pairs && 5*lower >= pairs && 2*same < pairs &&
		20*sentences >= len(lines)
}
