package marked

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dsload/dsload/internal/markup"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/internal/visible"
	"golang.org/x/text/width"
)

// A class is a set of marks of a run of characters.
type class uint8

const (
	loss class = 1 << iota
	special
	match
	soft // ours, about the text
	even // tokens in turn
	odd
)

// A run is harmless text of one class, on one line.
type run struct {
	class class
	text  string
}

// lay lays out the texts of a row in lines. Stretches that carry loss are told apart, by brackets if that is set, only if
// others do not; then, and between tokens, the ends of lines get a sign, since it matters which token they belong to.
// Tokens have colours in turn where colours say nothing else.
func lay(tokens, brackets bool, texts ...[]Piece) [][]run {
	partly := slices.ContainsFunc(slices.Concat(texts...), func(p Piece) bool { return !p.Loss })
	turn, inTurn := 0, tokens && !brackets && !partly
	lines, inside := [][]run{nil}, false
	put := func(c class, text string) { lines[len(lines)-1] = append(lines[len(lines)-1], run{c, text}) }
	end := func() { lines = append(lines, nil) }
	heading := func(text string) {
		if len(lines[len(lines)-1]) > 0 {
			end()
		}
		put(soft, text)
		end()
	}
	mark := func(on bool) {
		if on != inside && brackets {
			put(0, map[bool]string{true: "⟦", false: "⟧"}[on])
		}
		inside = on
	}
	for i, pieces := range texts {
		if i > 0 {
			heading("=>")
		}
		lengths := map[int]int{} // tokens of each document
		for _, p := range pieces {
			lengths[p.Segment] += p.Tokens
		}
		for j, p := range pieces {
			begins := j == 0 || p.Segment != pieces[j-1].Segment
			if begins && len(lengths) > 1 {
				mark(false)
				heading(fmt.Sprintf("── document %d of %d, %s ──", p.Segment+1, len(lengths),
					units.Plural(lengths[p.Segment], "token")))
			}
			if tokens && !inTurn && !begins && p.Tokens > 0 {
				put(soft, "│")
			}
			mark(p.Loss && partly)
			c := p.class(inside)
			if turn += min(p.Tokens, 1); inTurn && p.Tokens > 0 {
				c |= even << (turn % 2)
			}
			for k, line := range strings.Split(p.Text, "\n") {
				if k > 0 && (partly || tokens) {
					put(c, "⏎")
				}
				if k > 0 {
					end()
				}
				put(c, visible.Text(line))
			}
		}
		mark(false)
	}
	return lines
}

// class returns the class of a piece; its loss is shown if shown is set.
func (p *Piece) class(shown bool) (c class) {
	for i, on := range []bool{shown, p.Special, p.Match} {
		if on {
			c |= 1 << i
		}
	}
	return c
}

// A Screen shows the texts of rows on a terminal or in a pipe.
type Screen struct {
	Colour  bool // else ⟦ and ⟧ stand around what carries loss, if not everything does
	Columns int  // lines are broken there; 0 leaves them as they are
	Tokens  bool // pieces are tokens: │ stands between them, or they have colours in turn
}

// Legend says how a screen marks what carries loss.
func (s Screen) Legend() string {
	if s.Colour {
		return "in colour"
	}
	return "between ⟦ and ⟧"
}

// endColours ends the colour of a class. Colours have grounds, so that blanks and the ends of lines are seen. The 256
// colours of the palette are the same on dark and light terminals.
const endColours = "\x1b[0m"

func (c class) colour() string {
	switch {
	case c&match != 0:
		return "\x1b[30;48;5;221m"
	case c == loss|special:
		return "\x1b[97;48;5;28m"
	case c&special != 0:
		return "\x1b[97;48;5;240m"
	case c == loss:
		return "\x1b[30;48;5;157m"
	case c == even:
		return "\x1b[30;48;5;153m"
	case c == odd:
		return "\x1b[30;48;5;223m"
	case c == soft:
		return "\x1b[2m"
	}
	return ""
}

// Lines returns the lines of the texts of a row: of its tokens, or of prompt and target.
func (s Screen) Lines(texts ...[]Piece) (lines []string) {
	var b strings.Builder
	for _, line := range lay(s.Tokens, !s.Colour, texts...) {
		at := 0
		for _, r := range line {
			begin, end := "", ""
			if begin = r.class.colour(); begin != "" && s.Colour && r.text != "" {
				end = endColours
			} else {
				begin = ""
			}
			b.WriteString(begin)
			for _, char := range r.text {
				n := columns(char)
				if s.Columns > 0 && at+n > s.Columns {
					lines = append(lines, b.String()+end)
					b.Reset()
					b.WriteString(begin)
					at = 0
				}
				b.WriteRune(char)
				at += n
			}
			b.WriteString(end)
		}
		lines = append(lines, b.String())
		b.Reset()
	}
	return lines
}

// columns returns how many columns of a terminal a character takes.
func columns(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	return 1
}

// Style is the style sheet of HTML, for the page or the cell of a notebook around it. Each mark has a colour and a ground,
// so that it is seen on light and on dark pages.
const Style = `.dsload-row{margin:0 0 20px;overflow-wrap:anywhere}
.dsload-row p{margin:0 0 6px}
.dsload-row pre{white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.7;font:14px/1.7 ui-monospace,"Cascadia Mono","DejaVu Sans Mono",Menlo,monospace;border:1px solid #8888;border-radius:4px;padding:8px 12px;margin:0}
.dsload-row span{unicode-bidi:isolate;border-radius:2px}
.dsload-row .loss{background:#b4f0b4;color:#08210c;border-bottom:2px solid #1a7f37}
.dsload-row .special{outline:1px solid #888;outline-offset:-1px}
.dsload-row .match{background:#ffd75f;color:#241a00}
.dsload-row .soft{opacity:.6}
.dsload-row .odd{background:#88888850}
`

// PageStyle is that of a page of rows.
const PageStyle = `:root{color-scheme:light dark}
body{margin:0;background:#fafaf8;color:#1c1f23;font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media(prefers-color-scheme:dark){body{background:#14171a;color:#e8eaec}}
main{max-width:1000px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:24px;line-height:1.25;font-weight:600;margin:0 0 8px;overflow-wrap:anywhere}
` + Style

// HTML returns the markup of a row: its head, and its texts. tokens is set if pieces are tokens.
func HTML(head string, tokens bool, texts ...[]Piece) markup.HTML {
	body := markup.Each(lay(tokens, false, texts...), func(_ int, line []run) markup.HTML {
		return markup.Each(line, func(_ int, r run) markup.HTML {
			var names []string
			for i, name := range []string{"loss", "special", "match", "soft", "even", "odd"} {
				if r.class&(1<<i) != 0 {
					names = append(names, name)
				}
			}
			if r.text == "" {
				return ""
			}
			return markup.Format(`<span class="%s">%s</span>`, strings.Join(names, " "), r.text)
		}) + "\n"
	})
	return markup.Format(`<div class="dsload-row"><p>%s</p><pre>%s</pre></div>`+"\n", head, body)
}
