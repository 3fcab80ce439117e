package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// TestTokensOnce: texts with the end token at their ends make the rows of those without, whatever their lengths.
func TestTokensOnce(t *testing.T) {
	const token = "<|endoftext|>"
	dir := t.TempDir()
	write := func(name, mark string) {
		for i, text := range []string{"x", strings.Repeat("a b", 5), strings.Repeat("word ", 40_000)} {
			if err := os.WriteFile(filepath.Join(dir, name, fmt.Sprintf("%d.txt", i)), []byte(mark+text+mark), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"plain", "marked"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "")
	write("marked", token)
	for _, overflow := range example.Overflows {
		for length := 3; length < 16; length += effort.Of(4, 1, 1) {
			build := func(name string) ([][]uint32, int64) {
				fsys := shardtest.New()
				s := mustBuild(t, option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
					Settings: option.Settings{Sources: []string{filepath.Join(dir, name)}, Format: "document", EOS: option.OwnToken,
						BOS: option.OwnToken, Overflow: overflow, MaxLength: length}})
				rows, _ := splitRows(t, fsys, "data", splitTrain)
				return rows, s.Rendered
			}
			want, none := build("plain")
			got, all := build("marked")
			if fmt.Sprint(got) != fmt.Sprint(want) || none != 0 || all != 3 {
				t.Fatalf("%s at %d: %d rows of %d, %d and %d counted as rendered", overflow, length, len(got), len(want), none,
					all)
			}
		}
	}
}
