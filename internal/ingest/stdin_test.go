package ingest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

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
