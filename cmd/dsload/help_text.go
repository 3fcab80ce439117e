package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Help on a terminal or in a pipe.

// maxHelpWidth is the length of the longest line of help, in characters, and maxNameWidth that of the longest name
// that has its text on the same line.
const (
	maxHelpWidth = 100
	maxNameWidth = 30
)

// helpStyle is how help marks its parts: by colours on a terminal that has them, otherwise not at all.
type helpStyle struct {
	width             int
	title, name, word string // what a terminal takes as the beginning of a colour
}

// styleFor returns the style for w, and where to write what is styled.
func styleFor(w io.Writer) (helpStyle, io.Writer) {
	style := helpStyle{width: maxHelpWidth}
	guard, ok := w.(*terminalWriter)
	if !ok {
		return style, w
	}
	if f, ok := guard.w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			style.width = min(max(columns, 40), maxHelpWidth)
		}
	}
	if !colourful(w) {
		return style, w
	}
	style.title, style.name, style.word = "\x1b[1;32m", "\x1b[36m", "\x1b[2;36m"
	return style, guard.w // colours are ours, and help quotes nothing from outside
}

// paint returns text in a colour, if there is one.
func paint(colour, text string) string {
	if colour == "" || text == "" {
		return text
	}
	return colour + text + endColours
}

// write writes the page.
func (p *helpPage) write(w io.Writer) error {
	style, w := styleFor(w)
	_, err := io.WriteString(w, p.render(style))
	return err
}

// render returns the page in a style.
func (p *helpPage) render(style helpStyle) string {
	var b strings.Builder
	for i, paragraph := range p.about {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeParagraph(&b, paragraph, style.width)
	}
	p.writeLines(&b, style, "Usage", p.usage)
	p.writeLines(&b, style, "Examples", p.examples)
	for _, t := range p.tables {
		b.WriteString("\n" + paint(style.title, t.title+":") + "\n")
		t.write(&b, style)
	}
	if words := p.legend(); len(words) > 0 {
		b.WriteByte('\n')
		writeParagraph(&b, strings.Join(words, "; ")+".", style.width)
	}
	if len(p.see) > 0 {
		b.WriteByte('\n')
	}
	for _, sentence := range p.see {
		writeParagraph(&b, sentence, style.width)
	}
	return b.String()
}

// writeLines writes command lines under a title.
func (p *helpPage) writeLines(b *strings.Builder, style helpStyle, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n" + paint(style.title, title+":") + "\n")
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
}

// write writes the rows in two columns: names, and what they do.
func (t *helpTable) write(b *strings.Builder, style helpStyle) {
	column := 0
	for _, row := range t.rows {
		column = max(column, min(row.width(), maxNameWidth))
	}
	column += len("  ") + len("  ")
	for _, row := range t.rows {
		b.WriteString("  " + paint(style.name, row.name))
		if row.value != "" {
			b.WriteString(" " + paint(style.word, row.value))
		}
		at := 2 + row.width()
		if at+2 > column {
			b.WriteByte('\n')
			at = 0
		}
		for _, line := range wrapped(row.text, max(style.width-column, 20)) {
			b.WriteString(strings.Repeat(" ", column-at) + line + "\n")
			at = 0
		}
	}
}

// width returns the number of characters of the name and value.
func (r helpRow) width() int {
	n := utf8.RuneCountInString(r.name)
	if r.value != "" {
		n += 1 + utf8.RuneCountInString(r.value)
	}
	return n
}

// legend explains the words for values that the tables have.
func (p *helpPage) legend() (lines []string) {
	for _, entry := range legend {
		for _, t := range p.tables {
			if t.hasValue(entry[0]) {
				lines = append(lines, entry[0]+": "+entry[1])
				break
			}
		}
	}
	return lines
}

func (t *helpTable) hasValue(word string) bool {
	for _, row := range t.rows {
		if row.value == word {
			return true
		}
	}
	return false
}

// writeParagraph writes text in lines of at most width characters. Lines that begin with two spaces stay.
func writeParagraph(b *strings.Builder, text string, width int) {
	var prose []string
	flush := func() {
		for _, line := range wrapped(strings.Join(prose, " "), width) {
			b.WriteString(line + "\n")
		}
		prose = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			flush()
			b.WriteString(line + "\n")
			continue
		}
		prose = append(prose, line)
	}
	flush()
}

// wrapped breaks text at spaces into lines of at most width characters. A longer word has its own line.
func wrapped(text string, width int) (lines []string) {
	line, length := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if length > 0 && length+1+n > width {
			lines, line, length = append(lines, line), "", 0
		}
		if length > 0 {
			line, length = line+" ", length+1
		}
		line, length = line+word, length+n
	}
	if length > 0 {
		lines = append(lines, line)
	}
	return lines
}
