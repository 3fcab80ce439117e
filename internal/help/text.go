package help

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxWidth is the length of the longest line of help in characters.
	MaxWidth = 100
	// maxNameWidth is that of the longest name that has its text on the same line.
	maxNameWidth = 30
)

// Style is how help marks its parts. A terminal takes Title, Name and Word as the beginning of a colour and End as its
// end; without them nothing is marked.
type Style struct {
	Width                  int // characters in a line, at most MaxWidth
	Title, Name, Word, End string
}

// paint returns text in a colour, if there is one.
func (s Style) paint(colour, text string) string {
	if colour == "" || text == "" {
		return text
	}
	return colour + text + s.End
}

// Render returns the page in a style.
func (p *Page) Render(style Style) string {
	var b strings.Builder
	for i, paragraph := range p.about {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeParagraph(&b, paragraph, style.Width)
	}
	p.writeLines(&b, style, "Usage", p.usage)
	p.writeLines(&b, style, "Examples", p.examples)
	for _, t := range p.tables {
		b.WriteString("\n" + style.paint(style.Title, t.title+":") + "\n")
		t.write(&b, style)
	}
	if words := p.legend(); len(words) > 0 {
		b.WriteByte('\n')
		writeParagraph(&b, strings.Join(words, "; ")+".", style.Width)
	}
	if len(p.see) > 0 {
		b.WriteByte('\n')
	}
	for _, sentence := range p.see {
		writeParagraph(&b, sentence, style.Width)
	}
	return b.String()
}

// writeLines writes command lines under a title.
func (p *Page) writeLines(b *strings.Builder, style Style, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n" + style.paint(style.Title, title+":") + "\n")
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
}

// write writes the rows in two columns: names, and what they do.
func (t *table) write(b *strings.Builder, style Style) {
	column := 0
	for _, row := range t.rows {
		column = max(column, min(row.width(), maxNameWidth))
	}
	column += len("  ") + len("  ")
	for _, row := range t.rows {
		b.WriteString("  " + style.paint(style.Name, row.name))
		if row.value != "" {
			b.WriteString(" " + style.paint(style.Word, row.value))
		}
		at := 2 + row.width()
		if at+2 > column {
			b.WriteByte('\n')
			at = 0
		}
		for _, line := range wrapped(row.text, max(style.Width-column, 20)) {
			b.WriteString(strings.Repeat(" ", column-at) + line + "\n")
			at = 0
		}
	}
}

// width returns the number of characters of the name and value.
func (r entry) width() int {
	n := utf8.RuneCountInString(r.name)
	if r.value != "" {
		n += 1 + utf8.RuneCountInString(r.value)
	}
	return n
}

// legend explains the words for values that the tables have.
func (p *Page) legend() (lines []string) {
	for _, words := range legend {
		if slices.ContainsFunc(p.tables, func(t table) bool {
			return slices.ContainsFunc(t.rows, func(row entry) bool { return row.value == words[0] })
		}) {
			lines = append(lines, words[0]+": "+words[1])
		}
	}
	return lines
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
