package builtin

import "testing"

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		name   string
		split  string
		tokens int
		last   string
	}{{"gpt2", "gpt2", 50256, " gazed"}, {"p50k", "gpt2", 50281, "                         "},
		{"cl100k", "cl100k", 100256, " Conveyor"}, {"o200k", "o200k", 199998, " cocos"}} {
		v, err := Ranks(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Tokens) != c.tokens {
			t.Errorf("%s has %d tokens, want %d", c.name, len(v.Tokens), c.tokens)
		}
		if v.Split != c.split {
			t.Errorf("%s has split %s", c.name, v.Split)
		}
		seen := make(map[string]bool)
		for id, tok := range v.Tokens {
			if tok == nil && c.name == "p50k" && id == 50256 {
				continue // the end of a text
			}
			if len(tok) == 0 || seen[string(tok)] {
				t.Fatalf("%s: token %d is empty or occurs twice: %q", c.name, id, tok)
			}
			seen[string(tok)] = true
		}
		for b := range 256 {
			if !seen[string([]byte{byte(b)})] {
				t.Errorf("%s has no token for byte %d", c.name, b)
			}
		}
		for s, id := range v.Special {
			if int(id) < len(v.Tokens) && v.Tokens[id] != nil {
				t.Errorf("%s: special token %s has the id of a token", c.name, s)
			}
		}
		if last := string(v.Tokens[len(v.Tokens)-1]); last != c.last {
			t.Errorf("%s ends with %q, want %q", c.name, last, c.last)
		}
	}
	if _, err := Ranks("none"); err == nil {
		t.Error("no error for an unknown name")
	}
}

func BenchmarkRanks(b *testing.B) {
	for _, name := range []string{"gpt2", "cl100k", "o200k"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Ranks(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
