package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/marked"
)

// listOf returns rows that have these texts.
func listOf(texts ...string) *List {
	return &List{Len: int64(len(texts)), read: func(i int64) (*Row, error) {
		return &Row{of: &Split{}, Split: "train", Origin: Origin{Example: i}, Text: texts[i], InputIDs: []uint32{uint32(i)}}, nil
	}}
}

// A terminal types the next keys whenever a pager has drawn a screen and waits.
type terminal struct {
	p      *Pager
	keys   []string
	typed  chan []byte
	drawn  []string // the screens at which the pager waited
	broken bool
}

func (d *terminal) Write(b []byte) (int, error) {
	switch {
	case d.broken:
		return 0, errors.New("the terminal is gone")
	case !strings.HasPrefix(string(b), "\x1b[H"), strings.Contains(string(b), "searching"), len(d.p.typed) > 0:
		return len(b), nil
	}
	d.drawn = append(d.drawn, string(b))
	if n := len(d.drawn) - 1; n < len(d.keys) {
		d.typed <- []byte(d.keys[n])
	} else {
		close(d.typed)
	}
	return len(b), nil
}

// page runs a pager that gets keys one after another, and returns what was on the screen before each and at the end.
func page(t *testing.T, l *List, keys ...string) ([]string, error) {
	d := &terminal{keys: keys, typed: make(chan []byte, 1)}
	d.p = &Pager{List: l, Out: d, Typed: d.typed, Resized: make(chan os.Signal), Size: func() (int, int) { return 80, 24 }}
	err := d.p.Run(t.Context(), 0)
	return d.drawn, err
}

var rowShown = regexp.MustCompile(`row (\d+) of train`)

func TestPagerFollowsKeys(t *testing.T) {
	texts := []string{"zero", "one", "two words", "three", "four words"}
	for _, c := range []struct{ keys, want string }{
		{"n n p", "0 1 2 1"},
		{"p n", "0 0 1"}, // there is none before the first
		{"\x1b[C \x1b[C \x1b[D \x1bOC", "0 1 2 1 2"},
		{"n n n n n p", "0 1 2 3 4 4 3"},
		{"nn", "0 2"}, // typed at once
	} {
		var got []string
		drawn, err := page(t, listOf(texts...), strings.Fields(c.keys)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range drawn {
			got = append(got, rowShown.FindStringSubmatch(s)[1])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: rows %v, want %s", c.keys, got, c.want)
		}
	}
}

func TestPagerSearches(t *testing.T) {
	l := listOf("zero", "one", "two words", "three", "four words")
	last := func(keys ...string) string {
		drawn, err := page(t, l, keys...)
		if err != nil {
			t.Fatal(err)
		}
		return drawn[len(drawn)-1]
	}
	for _, c := range []struct{ keys, row, says string }{
		{"/ words \r", "2", "3 of 5"},
		{"/ words \r n", "4", ""},
		{"/ words \r n n", "4", "no more rows"},
		{"/ words \r n p", "2", ""},
		{"/ wordz \x7f s \r", "2", ""},
		{"n n n / one \r", "1", ""},                       // it goes on at the first row
		{"n / nothing \r", "1", "no row matches nothing"}, // the list stays as it was
		{"n / (x \r", "1", "missing closing"},             //
		{"/ w \x1b n", "1", ""},                           // Escape leaves the question
		{"/ words \r / \r", "2", ""},                      // an empty one ends the search
		{"/ q \x1b", "0", "q quit"},                       // q is a letter of what is asked
		{"/ \x1b[A \x1b", "0", "q quit"},                  // and an arrow is none
		{"/ words \r / \r n", "3", "4 of 5"},              //
		{"n n t", "2", "q quit"},                          //
		{"n \x03 n", "1", "q quit"},                       // Ctrl-C ends it
		{"/ 2 \r", "0", "no row matches 2"},               // the text is searched, not the ids
	} {
		got := last(strings.Split(c.keys, " ")...)
		if row := rowShown.FindStringSubmatch(got)[1]; row != c.row || !strings.Contains(got, c.says) {
			t.Errorf("%q: row %s, want %s with %q: %q", c.keys, row, c.row, c.says, got)
		}
	}
}

// TestPagerFits shows long rows on small screens: no line is longer than the screen, and all of it can be reached.
func TestPagerFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 6}, {5, 2}, {1, 1}} {
		words := min(300, 50*size[1]) // every page lays all of it out
		long := strings.Repeat("word 中文 \x1b[2J ", words)
		l := &List{Len: 1, read: func(int64) (*Row, error) {
			return &Row{of: &Split{}, Split: "train", Text: long, Marks: []marked.Piece{{Text: long, Tokens: 1}}}, nil
		}}
		p := Pager{List: l}
		p.row, _ = l.read(0)
		seen := ""
		for range 2500 {
			var b strings.Builder
			p.Out, p.Size = &b, func() (int, int) { return size[0], size[1] }
			if err := p.draw(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(b.String(), "\n"); n != max(size[1]-1, 1) {
				t.Fatalf("%v: %d lines", size, n)
			}
			if strings.Contains(b.String(), "\x1b[2J") {
				t.Fatalf("%v: a sequence of the text reaches the terminal", size)
			}
			seen += b.String()
			before := p.top
			if err := p.follow(t.Context(), " "); err != nil {
				t.Fatal(err)
			}
			if p.top = max(min(p.top, p.lines-p.height), 0); p.top == before {
				break
			}
		}
		bare := regexp.MustCompile(`\x1b\[[0-9;]*[a-zA-Z]|[\r\n]|\d.*?q quit`).ReplaceAllString(seen, "")
		if n := strings.Count(bare, "文"); n < words {
			t.Errorf("%v: %d of %d words are seen", size, n, words)
		}
	}
}

// TestPagerShowsTheMatch searches in a row of many lines.
func TestPagerShowsTheMatch(t *testing.T) {
	text := strings.Repeat("line\n", 500) + "needle\n" + strings.Repeat("line\n", 500)
	read := func(i int64) (*Row, error) {
		return &Row{of: &Split{}, Split: "train", Text: text, Marks: []marked.Piece{{Text: text}}}, nil
	}
	row, _ := read(0)
	row.match(regexp.MustCompile("needle"))
	row.Marks = marked.Highlight(row.Marks, row.matches)
	for _, height := range []int{5, 24} {
		var b strings.Builder
		p := Pager{row: row, top: -1, Out: &b, List: &List{Len: 1}, Size: func() (int, int) { return 80, height }}
		if err := p.draw(); err != nil || !strings.Contains(b.String(), "needle") {
			t.Errorf("of %d lines none has the match: %q, %v", height, b.String(), err)
		}
	}
}

func TestPagerEnds(t *testing.T) {
	if _, err := page(t, listOf()); err != io.EOF {
		t.Errorf("no rows: %v", err)
	}
	l := *listOf("a", "b")
	l.Pattern = regexp.MustCompile("c")
	if _, err := page(t, &l); err != io.EOF {
		t.Errorf("no row that matches: %v", err)
	}
	broken := errors.New("a broken shard")
	if _, err := page(t, &List{Len: 2, read: func(int64) (*Row, error) { return nil, broken }}); err != broken {
		t.Errorf("a row that cannot be read: %v", err)
	}
	d := &terminal{broken: true}
	if err := (&Pager{List: listOf("a"), Out: d}).Run(t.Context(), 0); err == nil {
		t.Error("a terminal that is gone is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := Pager{List: listOf("a"), Out: io.Discard, Size: func() (int, int) { cancel(); return 80, 24 }}
	if err := p.Run(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestPagerStopsSearching types q while every row is read.
func TestPagerStopsSearching(t *testing.T) {
	l := listOf(strings.Split(strings.Repeat("x ", 1000), " ")...)
	typed := make(chan []byte, 1)
	inner, n := l.read, 0
	l.read = func(i int64) (*Row, error) {
		if n++; n == 100 {
			typed <- []byte("q")
		}
		return inner(i)
	}
	p := Pager{List: l, Out: io.Discard, Typed: typed, Size: func() (int, int) { return 80, 24 }}
	p.row = &Row{of: &Split{}}
	asked := "nowhere"
	p.asked = &asked
	if err := p.ask(t.Context(), "\r"); err != errStopped || n > 110 || p.List != l {
		t.Errorf("%v after %d rows", err, n)
	}
}

func ExampleRow_Head() {
	source, record, step, rank, zero := "b.jsonl", int64(15), int64(4), 0, int64(0)
	r := Row{Split: "train", Origin: Origin{Example: 104, Document: 104, Source: &source, Record: &record}, Tokens: 40, LossTokens: 10}
	fmt.Println(r.Head(""))
	r.Row, r.Step, r.Rank, r.Epoch, r.LossTokens = &record, &step, &rank, &zero, 40
	r.Text, r.matches = "éèà found", [][]int{{6, 8}}
	fmt.Println(r.Head(""))
	// Output:
	// row 104 of train: document 104, part 0, record 15 of b.jsonl; 40 tokens, loss on 10, 25.0%
	// row 15 (epoch 0, step 4, rank 0): example 104, document 104, part 0, record 15 of b.jsonl; 40 tokens, all with loss; 1 place, at character 3
}
