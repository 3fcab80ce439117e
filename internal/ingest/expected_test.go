package ingest

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/pack"
)

// TestExpectedExamples: no more of the sources is looked at than what may change the choice: the last source is a pipe,
// which bounds nothing if the look reaches it.
func TestExpectedExamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "first.jsonl")
	put(t, path, []byte(strings.Repeat(`{"text":"some words and more of them"}`+"\n", 1000)))
	for _, c := range []struct {
		o      option.Settings
		wanted int64
		want   int64
	}{
		{option.Settings{MaxLength: 8}, 10, 32 * 10},
		{option.Settings{MaxLength: 8}, 500, 0},
		{option.Settings{MaxExamples: 30}, 500, 30},
		{option.Settings{MaxLength: 8, Pack: pack.BFDSplit}, 10, 320},
		{option.Settings{MaxLength: 800, Pack: pack.BFDSplit}, 10, 0},
		{option.Settings{}, math.MaxInt64, 0},
	} {
		c.o.Sources = []string{path, "-"}
		b := newBuild(option.Options{Out: "data", Settings: c.o, Resources: option.Resources{LoadedTokenizer: small(),
			Stdin: strings.NewReader(`{"text":"of the pipe"}`)}}.WithDefaults(), nil)
		if err := b.prepare(context.Background()); err != nil {
			t.Fatal(err)
		}
		got, err := b.ExpectedExamples(context.Background(), c.wanted)
		if err != nil || got != c.want {
			t.Errorf("%s: %d examples, %v, want %d", fmt.Sprint(c.o.MaxExamples, c.o.MaxLength, c.wanted), got, err, c.want)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
