package source

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/refdata"
)

// shared finds the real data next to the repository.
func shared(t testing.TB, name string) string {
	t.Helper()
	return refdata.Path(t, filepath.Join("corpora", name))
}

// piece is a record with its bytes.
type piece struct {
	Record
	data string
	next Position
}

func openSet(t testing.TB, o Options) *Set {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inputsOf(t testing.TB, s *Set) []Input {
	t.Helper()
	out := make([]Input, s.Len())
	for i := range out {
		var err error
		if out[i], err = s.Input(i); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// readFrom reads a set from a position to its end, or to the first error.
func readFrom(t testing.TB, s *Set, at Position) ([]piece, error) {
	t.Helper()
	r, err := s.Reader(at)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []piece
	prefix := []byte("kept")
	for {
		var rec Record
		data, err := r.Next(prefix, &rec)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if !bytes.HasPrefix(data, prefix) {
			t.Fatal("Next changed what stood in dst")
		}
		if rec.Err != nil && len(data) != len(prefix) {
			t.Fatal("a bad record has bytes")
		}
		out = append(out, piece{rec, string(data[len(prefix):]), r.Position()})
	}
}

func readAll(t testing.TB, o Options) []piece {
	t.Helper()
	out, err := readFrom(t, openSet(t, o), Position{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRealCorpora(t *testing.T) {
	effort.RacedElsewhere(t)
	for _, c := range []struct {
		name      string
		format    Format
		documents int
	}{
		{"wikitext-2/test.txt", WikiText, 60},
		{"wikitext-2/valid.txt", WikiText, 60},
		{"recipes/recipenlg-sample.csv", Recipes, 49},
		{"prose/peps.txt", Text, -1},
		{"multilingual/tldr.txt", Text, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := shared(t, c.name)
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := c.documents
			if want < 0 { // counted in the plainest way
				want = 0
				for line := range strings.Lines(string(whole)) {
					if strings.TrimSpace(line) != "" {
						want++
					}
				}
			}
			set := openSet(t, Options{Args: []string{name}})
			if got := inputsOf(t, set)[0].Format; got != c.format {
				t.Fatalf("detected %s, want %s", got, c.format)
			}
			records, err := readFrom(t, set, Position{})
			if err != nil {
				t.Fatal(err)
			}
			documents := 0
			for i, r := range records {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				if r.First {
					documents++
				}
				line, _, _ := strings.Cut(r.data, "\n")
				if line = strings.TrimSpace(line); r.Format == WikiText && r.First &&
					!(strings.HasPrefix(line, "= ") && strings.HasSuffix(line, " =")) {
					t.Errorf("record %d begins with %.40q", i, r.data)
				}
				if !bytes.HasPrefix(whole[r.Offset:], []byte(r.data)) {
					t.Errorf("record %d is not what stands at byte %d", i, r.Offset)
				}
			}
			if documents != want {
				t.Errorf("%d documents, want %d", documents, want)
			}
		})
	}
}

// WikiText's articles put together again are the file, but for the blank line before the first.
func TestArticlesAreTheWholeFile(t *testing.T) {
	name := shared(t, "wikitext-2/test.txt")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, r := range readAll(t, Options{Args: []string{name}, Framing: Framing{PieceBytes: 1000}}) {
		all.WriteString(r.data)
	}
	if want := strings.TrimPrefix(string(whole), " \n"); all.String() != want {
		t.Errorf("%d bytes in articles, want %d", all.Len(), len(want))
	}
}
