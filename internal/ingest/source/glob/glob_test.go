package glob

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		folder, want  bool
	}{
		{"*.txt", "a/b/c.txt", false, true},
		{"*.txt", "c.md", false, false},
		{"*.txt", ".c.txt", false, false},
		{".*", ".c.txt", false, true},
		{"b*", "a/book", true, true},
		{"b*", "b/a.txt", false, false}, // its folder is matched, not itself
		{"a/*.txt", "a/c.txt", false, true},
		{"a/*.txt", "b/a/c.txt", false, false},
		{"/c.txt", "c.txt", false, true},
		{"**/x/*.md", "x/a.md", false, true},
		{"**/x/*.md", "p/q/x/a.md", false, true},
		{"**/x/*.md", "p/x/q/a.md", false, false},
		{"a/**", "a/b/c", false, true},
		{"a/**/c", "a/c", false, true},
		{"a/**/b/**/c", "a/1/b/2/3/c", false, true},
		{"build/", "build", true, true},
		{"build/", "build", false, false},
		{"*.{txt,md}", "a/b.md", false, true},
		{"*.{txt,md}", "a/b.csv", false, false},
		{"[!a]*", "b.txt", false, true},
		{"[!a]*", "a.txt", false, false},
		{"{a}", "{a}", false, true},
		{"{a,b}{1,2}", "b1", false, true},
	} {
		ps, err := parsePatterns(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, p := range ps {
			got = got || p.match(strings.Split(c.path, "/"), c.folder)
		}
		if got != c.want {
			t.Errorf("%s matches %s: %t", c.pattern, c.path, got)
		}
	}
	for _, bad := range []string{"", "/", "a[", "x/[z/y"} {
		if _, err := parsePatterns(bad); !errors.Is(err, cause.Usage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
