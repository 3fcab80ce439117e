package spelling

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOneOf(t *testing.T) {
	type color string
	words := []color{"red", "green"}
	for typed, want := range map[string]string{
		"gren": "must be one of red, green; did you mean green?",
		"RED":  "must be one of red, green; did you mean red?",
		"grey": "must be one of red, green; did you mean gray?",
		"blue": "must be one of red, green",
	} {
		if got := OneOf(typed, words, "gray"); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"corpus.txt", "other.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	near := filepath.Join(dir, "corpus.txt")
	for name, want := range map[string]string{
		filepath.Join(dir, "corpus.tx"):       "no such file or directory; did you mean " + near + "?",
		filepath.Join(dir, "zebra"):           "no such file or directory",
		filepath.Join(dir, "no", "corpus.tx"): "no such file or directory",
		filepath.Join(dir, "other.csv"):       "no such file or directory", // a link that leads nowhere
	} {
		if got := MissingFile(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
