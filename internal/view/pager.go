package view

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/internal/visible"
)

// A Pager shows the rows of a list on a terminal, one at a time, and follows keys. It belongs to the goroutine that calls
// Run.
type Pager struct {
	List    *List
	Screen  marked.Screen
	Out     io.Writer                   // the terminal, in raw mode
	Typed   <-chan []byte               // what is typed; closed when the terminal is gone
	Resized <-chan os.Signal            // the terminal's window changed
	Size    func() (columns, lines int) // the terminal's

	row    *Row
	at     int64   // its number in the list
	top    int     // the first line that is shown, -1 for where a match is in the middle
	height int     // lines that are shown
	lines  int     // lines of the row
	typed  []byte  // keys still to be followed
	asked  *string // what is typed after a slash
	said   string  // a message in place of the keys
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the terminal's other screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// Run shows the row with a number in the list, or the first that matches from there on, until q is typed. The error is
// io.EOF if no row matches.
func (p *Pager) Run(ctx context.Context, at int64) error {
	if err := p.find(ctx, at, 1); err != nil {
		return err
	}
	if _, err := io.WriteString(p.Out, enterScreen); err != nil {
		return err
	}
	defer io.WriteString(p.Out, leaveScreen)
	for {
		if err := p.draw(); err != nil {
			return err
		}
		key, err := p.key(ctx)
		if err != nil || key == "q" && p.asked == nil || key == "\x03" {
			return err
		}
		p.said = ""
		if p.asked != nil {
			err = p.ask(ctx, key)
		} else {
			err = p.follow(ctx, key)
		}
		switch err {
		case nil:
		case io.EOF:
			p.said = cmp.Or(p.said, "no more rows; ")
		case errStopped:
			p.said = "stopped; "
		default:
			return err
		}
	}
}

// key returns the next key, or "" after the window changed.
func (p *Pager) key(ctx context.Context) (string, error) {
	if len(p.typed) == 0 {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-p.Resized:
			return "", nil
		case typed, ok := <-p.Typed:
			if !ok {
				return "q", nil
			}
			p.typed = typed
		}
	}
	key := keys().Find(p.typed)
	p.typed = p.typed[len(key):]
	return string(key), nil
}

// keys matches the first key of what is typed: a sequence that a terminal sends for it, or a character.
var keys = lazy.Regexp(`(?s)^(\x1b[\[O][0-9;]*[A-Za-z~]|.)`)

// follow does what a key asks for.
func (p *Pager) follow(ctx context.Context, key string) error {
	switch key {
	case "n", "\x1b[C", "\x1bOC", "\r":
		return p.find(ctx, p.at+1, 1)
	case "p", "N", "\x1b[D", "\x1bOD":
		return p.find(ctx, p.at-1, -1)
	case "j", "\x1b[B", "\x1bOB":
		p.top++
	case "k", "\x1b[A", "\x1bOA":
		p.top = max(p.top-1, 0)
	case " ", "\x1b[6~":
		p.top += p.height
	case "b", "\x1b[5~":
		p.top = max(p.top-p.height, 0)
	case "g", "\x1b[H":
		p.top = 0
	case "G", "\x1b[F":
		p.top = p.lines
	case "t":
		p.Screen.Tokens = !p.Screen.Tokens
		return p.row.Describe(p.Screen.Tokens)
	case "/":
		p.asked = new(string)
	}
	return nil
}

// ask takes a key of what is searched for. The search begins with the row that is shown, and goes on at the first.
func (p *Pager) ask(ctx context.Context, key string) error {
	switch key {
	case "\x1b":
		p.asked = nil
	case "\x7f", "\b":
		_, n := utf8.DecodeLastRuneInString(*p.asked)
		*p.asked = (*p.asked)[:len(*p.asked)-n]
	case "\r", "\n":
		text, before := *p.asked, p.List
		p.asked = nil
		found := *before
		if found.Pattern = nil; text != "" {
			var err error
			if found.Pattern, err = regexp.Compile(text); err != nil {
				p.said = err.Error() + "; "
				return nil
			}
		}
		p.List = &found
		err := p.find(ctx, p.at, 1)
		if err == io.EOF {
			err = p.find(ctx, 0, 1)
		}
		if err != nil {
			p.List = before
		}
		if err == io.EOF {
			p.said = "no row matches " + text + "; "
		}
		return err
	default:
		if key >= " " && key[0] != '\x1b' {
			*p.asked += key
		}
	}
	return nil
}

// find shows the next row from a number of the list on. While it looks for one, q, Escape and Ctrl-C end the search.
func (p *Pager) find(ctx context.Context, at, step int64) error {
	if p.List.Pattern != nil {
		if p.said = "searching, q stops; "; p.row == nil {
			_, _ = io.WriteString(p.Out, p.said+"\r") // what is wrong with the terminal shows soon
		} else if err := p.draw(); err != nil {
			return err
		}
		p.said = ""
	}
	row, at, err := p.List.Next(at, step, p.Screen.Tokens, func() error {
		select {
		case typed, ok := <-p.Typed:
			if !ok || bytes.ContainsAny(typed, "q\x03\x1b") {
				return errStopped
			}
			p.typed = append(p.typed, typed...)
		default:
		}
		return ctx.Err()
	})
	if err == nil {
		p.row, p.at, p.top = row, at, -1
	}
	return err
}

var errStopped = fault.New(fault.Interrupted, "the search was stopped")

// draw shows the row and the keys.
func (p *Pager) draw() error {
	columns, height := p.Size()
	p.height = max(height-1, 1)
	screen := p.Screen
	screen.Columns = max(columns, 2)
	lines := append(marked.Screen{Columns: columns}.Lines([]marked.Piece{{Text: p.row.Head(p.Screen.Legend()), Loss: true}}), "")
	if p.top == -1 {
		p.top = len(lines) + p.row.found(screen) - p.height/2
	}
	lines = append(lines, p.row.Lines(screen)...)
	p.lines = len(lines)
	p.top = max(min(p.top, p.lines-p.height), 0)
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i := range p.height {
		b.WriteString("\x1b[2K")
		if at := p.top + i; at < p.lines {
			b.WriteString(lines[at])
		}
		b.WriteString("\r\n")
	}
	b.WriteString("\x1b[2K" + p.status(columns))
	_, err := io.WriteString(p.Out, b.String())
	return err
}

// status returns the last line.
func (p *Pager) status(columns int) string {
	text := fmt.Sprintf("%s%s of %s", p.said, units.Count(p.at+1), units.Count(p.List.Len))
	if end := min(p.top+p.height, p.lines); end < p.lines || p.top > 0 {
		text += fmt.Sprintf(", %d%% of its lines", 100*end/p.lines)
	}
	text += "; n next, p previous, / search, t tokens, q quit"
	if p.asked != nil {
		text = "/" + *p.asked + "█"
	}
	if shown := []rune(visible.Text(text)); len(shown) >= columns {
		text = string(shown[:max(columns-1, 0)])
	}
	return "\x1b[7m" + strings.ReplaceAll(visible.Text(text), "\n", "") + "\x1b[0m"
}
