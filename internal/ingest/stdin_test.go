package ingest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/shard/shardtest"
)

func TestInterruptibleReadsTheSameBytes(t *testing.T) {
	want := strings.Repeat("some words\n", 50_000)
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(want),
		"halves":        iotest.HalfReader(strings.NewReader(want)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(want))} {
		i := setup.NewInterruptible(context.Background(), r)
		got, err := io.ReadAll(i)
		i.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
}

// TestInterruptWhileInputIsAwaited ends a build whose standard input brings nothing more.
func TestInterruptWhileInputIsAwaited(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.WriteString(w, strings.Repeat("some words\n", 200_000))
		cancel()
	}()
	_, err := Run(ctx, option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Stdin: r, FS: shardtest.New()},
		Settings:  option.Settings{Sources: []string{"-"}, Format: "text"}})
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("the build ended with %v", err)
	}
}
