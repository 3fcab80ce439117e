package marked

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/refdata"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

func gpt2(t *testing.T) *tokenize.Tokenizer {
	t.Helper()
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func joined(pieces []Piece) (text string, tokens int) {
	for _, p := range pieces {
		text += p.Text
		tokens += p.Tokens
	}
	return text, tokens
}

var texts = []string{"", "one", "Hello, world.\nA second line\t and 中文字 🦄🦄, ünïcode.", strings.Repeat("naïve 🦄 ", 80),
	"\x1b[31mred\x00\ufffd\ufffd end", "  leading", strings.Repeat("\u202e", 30)}

// TestCutKeepsText holds the joined pieces to what the tokenizer decodes, of tokens and of stretches.
func TestCutKeepsText(t *testing.T) {
	for _, text := range texts {
		tok := gpt2(t)
		ids := tok.Encode(text)
		for _, each := range []bool{false, true} {
			loss := make([]bool, len(ids))
			for i := range loss {
				loss[i] = rand.IntN(3) == 0
			}
			got, n := joined(Cut(tok, ids, loss, nil, each))
			if got != tok.Decode(ids) || n != len(ids) {
				t.Errorf("%q, each %v: %q of %d tokens, want %d", text, each, got, n, len(ids))
			}
		}
	}
}

// TestCutOfFamilies does the same with tokenizers whose tokens depend on those before them.
func TestCutOfFamilies(t *testing.T) {
	folder := refdata.Path(t, "tokenizers")
	names, err := os.ReadDir(folder)
	if err != nil {
		t.Skip(err)
	}
	looked := 0
	for _, name := range names {
		tok, err := tokenize.Load(filepath.Join(folder, name.Name()))
		if err != nil {
			continue
		}
		for _, text := range []string{"one two three unbelievable things, and 42 more", strings.Repeat("the naïve kitchen ", 60)} {
			ids := slices.Concat(tok.Prefix(), tok.Encode(text), tok.Suffix())
			if got, _ := joined(Cut(tok, ids, nil, nil, true)); got != tok.Decode(ids) {
				t.Errorf("%s: %q, want %q", name.Name(), got, tok.Decode(ids))
			}
		}
		parts := strings.Split("\ufffd,\ufffd\ufffd, 🦄,é,中, a,👩‍👩‍👧,naïve", ",")
		for range 100 {
			var ids []uint32
			for range rand.IntN(30) {
				ids = append(ids, tok.Encode(parts[rand.IntN(len(parts))])...)
			}
			from := rand.IntN(min(3, len(ids)+1)) // in a character, as in a row that continues a document
			ids = ids[from : len(ids)-rand.IntN(min(3, len(ids)-from+1))]
			if got, _ := joined(Cut(tok, ids, nil, nil, true)); got != tok.Decode(ids) {
				t.Errorf("%s: %d: %q, want %q", name.Name(), ids, got, tok.Decode(ids))
			}
		}
		looked++
	}
	if looked < 3 {
		t.Skipf("%d tokenizers were loaded", looked)
	}
}

func TestCutMarks(t *testing.T) {
	tok := gpt2(t)
	end := tok.Encode("<|endoftext|>")
	eos, _ := tok.ID("<|endoftext|>")
	ids := append(append(tok.Encode("a b"), eos), tok.Encode("c d")...)
	loss := []bool{false, true, true, false, false}
	got := Cut(tok, ids, loss, []int32{3, 2}, false)
	want := []Piece{{Text: "a", Tokens: 1}, {Text: " b", Tokens: 1, Loss: true},
		{Text: "<|endoftext|>", Tokens: 1, Loss: true, Special: true}, {Text: "c d", Tokens: 2, Segment: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if len(end) > 1 { // the same letters in a text are no special token
		for _, p := range Cut(tok, end, nil, nil, true) {
			if p.Special {
				t.Errorf("%q is a special token", p.Text)
			}
		}
	}
	lines := Screen{}.Lines(got)
	if want := []string{"── document 1 of 2, 3 tokens ──", "a⟦ b<|endoftext|>⟧", "── document 2 of 2, 2 tokens ──", "c d"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	if got := Cut(nil, []uint32{5, 6}, nil, nil, false); got[0].Text != "5 6 " {
		t.Errorf("ids without a tokenizer: %v", got)
	}
}

// TestCutAfterReplacement: U+FFFD in a text, and bytes of a character that never ends, keep their own marks, as do those
// that follow.
func TestCutAfterReplacement(t *testing.T) {
	tok := gpt2(t)
	eos, _ := tok.ID("<|endoftext|>")
	for name, first := range map[string]uint32{"in the text": tok.Encode("\ufffd")[0], "half a character": tok.Encode("\U0001f984")[0]} {
		got := Cut(tok, []uint32{first, eos, first, tok.Encode("中")[0]}, []bool{false, true, false, true}, nil, false)
		want := []Piece{{Text: "\ufffd", Tokens: 1}, {Text: "<|endoftext|>", Tokens: 1, Loss: true, Special: true},
			{Text: "\ufffd", Tokens: 1}, {Text: "中", Tokens: 1, Loss: true}}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHighlight(t *testing.T) {
	pieces := []Piece{{Text: "one tw", Tokens: 2}, {Tokens: 1}, {Text: "o three", Tokens: 2, Loss: true}}
	for pattern, want := range map[string][]string{
		"two":    {"one ", "*tw", "*o", " three"},
		"^one":   {"*one", " tw", "o three"},
		"three$": {"one tw", "o ", "*three"},
		"x*":     {"one tw", "o three"},
		"e":      {"on", "*e", " tw", "o thr", "*e", "*e"},
	} {
		var got []string
		n := 0
		for _, p := range Highlight(pieces, regexp.MustCompile(pattern).FindAllStringIndex("one two three", -1)) {
			if n += p.Tokens; p.Text != "" {
				got = append(got, map[bool]string{true: "*"}[p.Match]+p.Text)
			}
		}
		if !slices.Equal(got, want) || n != 5 {
			t.Errorf("%s: %q of %d tokens, want %q", pattern, got, n, want)
		}
	}
}

var ownColours = regexp.MustCompile(`\x1b\[(30;48;5;153|30;48;5;223|30;48;5;157|97;48;5;240|97;48;5;28|30;48;5;221|2|0)m`)

// TestScreenIsHarmless holds a screen to its own escape sequences, its width, and the words of the text.
func TestScreenIsHarmless(t *testing.T) {
	tok := gpt2(t)
	for _, text := range texts {
		ids := tok.Encode(text)
		loss := make([]bool, len(ids))
		for i := range loss {
			loss[i] = i%5 > 2
		}
		for _, s := range []Screen{{}, {Colour: true}, {Columns: 11}, {Colour: true, Columns: 7, Tokens: true}} {
			for _, line := range s.Lines(Cut(tok, ids, loss, nil, s.Tokens)) {
				bare := line
				if s.Colour {
					bare = ownColours.ReplaceAllString(line, "")
				}
				wide := 0
				for _, r := range bare {
					wide += columns(r)
					if r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e {
						t.Errorf("%q has %U", line, r)
					}
				}
				if s.Columns > 0 && wide > s.Columns {
					t.Errorf("%q takes %d of %d columns", line, wide, s.Columns)
				}
				if last := strings.LastIndex(line, "\x1b["); last >= 0 && !strings.HasPrefix(line[last:], endColours) {
					t.Errorf("%q ends in a colour", line)
				}
			}
		}
	}
}

// TestHTMLIsText holds markup of hostile text to elements of ours.
func TestHTMLIsText(t *testing.T) {
	hostile := "a <script>alert(1)</script>\x1b[2J\n<img src=x onerror=y> \u202e\" '"
	got := string(HTML("head <b>", false, []Piece{{Text: hostile, Tokens: 1, Loss: true}, {Text: "x", Tokens: 1, Special: true}}))
	tags := regexp.MustCompile(`<[^>]*>`).FindAllString(got, -1)
	for _, tag := range tags {
		if !regexp.MustCompile(`^</?(div|p|span|pre)( class="[a-z -]*")?>$`).MatchString(tag) {
			t.Errorf("the markup has %s", tag)
		}
	}
	if len(tags) < 10 || !strings.Contains(got, `class="loss">a &lt;script&gt;`) || strings.ContainsAny(got, "\x1b\u202e") {
		t.Error(got)
	}
}
