package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/textcache"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/zeebo/blake3"
)

// announcement is the first line of 'build --cached --announce': where the dataset will be, and what
// is known of it before it is built.
type announcement struct {
	Folder    string              `json:"folder"`
	Seal      string              `json:"seal"`
	Tokenizer shard.TokenizerInfo `json:"tokenizer"`
	// Error is set in the last line, instead of a summary, if the build failed.
	Error string `json:"error,omitempty"`
}

// textSealPrefix distinguishes the seal of text from that of a manifest.
const textSealPrefix = "text-"

// announce prints the announcement of a build. The seal is the same during the build, after it, and
// for every server of unchanged text with equal settings.
func announce(cmd *cobra.Command, folder string, id *ingest.Identity) error {
	sum := blake3.Sum256([]byte(id.Settings + "\n" + id.Content + "\n"))
	return json.NewEncoder(cmd.OutOrStdout()).Encode(announcement{Folder: folder,
		Seal: fmt.Sprintf("%s%x", textSealPrefix, sum[:28]), Tokenizer: id.Tokenizer})
}

// announceError prints why an announced build failed.
func announceError(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(announcement{Error: errorLine(err)}))
}

// endWithStdin returns a context that ends when standard input does, as it does when the parent
// process is killed.
func endWithStdin(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with the process: a read of standard input cannot be interrupted
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx, cancel
}

// textSources returns the arguments of serve that are text, and the flags about it, or nothing if
// all are datasets.
func textSources(args []string, text *pflag.FlagSet) (sources, flags []string, err error) {
	asked := given(text)
	sources = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return isServedFolder(arg) || len(asked) == 0 && inBucket(arg)
	})
	if !slices.ContainsFunc(sources, func(arg string) bool { return isText(arg, len(asked) > 0) }) {
		if len(asked) > 0 {
			return nil, nil, usagef("serve: %s is about text, and %s was built already; "+
				"leave the flag out, or give the text", strings.SplitN(asked[0], "=", 2)[0], args[0])
		}
		return nil, nil, nil
	}
	if len(sources) < len(args) {
		return nil, nil, usagef("serve: %s is text and others are datasets; "+
			"build the text, and serve it as NAME=FOLDER",
			source.Redact(sources[0]))
	}
	return sources, asked, nil
}

// A textBuild builds text in a process of its own, whose memory is free once it has ended.
type textBuild struct {
	announcement
	sources string
	child   *exec.Cmd
	alive   io.Closer // the child's standard input: it stops when this is closed, or when this process ends
	done    chan struct{}
	held    io.Closer // the dataset in the cache
	stopped atomic.Bool

	// Valid after done.
	err    error  // as the command's own
	reason string // err in words
}

// startTextBuild starts a build and waits until it has said where its dataset will be, or has ended.
// A build that ended before is an error.
func startTextBuild(cmd *cobra.Command, sources, flags []string) (*textBuild, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("build %s: find this program: %w", sourcesText(sources), err)
	}
	args := append([]string{"build", "--cached", "--announce", "--json"}, flags...)
	b := &textBuild{sources: sourcesText(sources), done: make(chan struct{}),
		child: exec.Command(self, append(append(args, "--"), sources...)...)}
	b.child.Stderr = cmd.ErrOrStderr()
	stdin, err := b.child.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", b.sources, err)
	}
	b.alive = stdin
	stdout, err := b.child.StdoutPipe()
	if err == nil {
		err = b.child.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", b.sources, err)
	}
	lines := json.NewDecoder(stdout)
	first := make(chan error, 1)
	go func() {
		first <- lines.Decode(&b.announcement)
	}()
	select {
	case err = <-first:
	case <-cmd.Context().Done():
		b.interrupt()
		err = <-first
	}
	go b.follow(lines, cmd.ErrOrStderr())
	if err != nil || b.Folder == "" {
		<-b.done
		return nil, cmp.Or(b.err, fmt.Errorf("build %s: it named no folder", b.sources))
	}
	return b, nil
}

// follow reads the output of the build to its end.
func (b *textBuild) follow(lines *json.Decoder, stderr io.Writer) {
	defer close(b.done)
	var last struct {
		Out      string   `json:"out"`
		Rejected int64    `json:"rejected"`
		Dropped  int64    `json:"dropped"`
		Notes    []string `json:"notes"` // what the build left out, or did in an unexpected way
		Error    string   `json:"error"`
	}
	readErr := lines.Decode(&last)
	_, _ = io.Copy(io.Discard, lines.Buffered())
	err := b.child.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		b.err, b.reason = &printedError{exit.ExitCode()}, strings.TrimPrefix(last.Error, "build "+b.sources+": ")
		if b.reason == "" {
			b.reason = fmt.Sprintf("it ended with exit code %d", exit.ExitCode())
		}
		return
	case err != nil && b.stopped.Load(): // before it could stop by itself
		b.err = fault.Kindf(fault.Interrupted, "build %s: interrupted", b.sources)
	case err != nil:
		b.err = fmt.Errorf("build %s: %w", b.sources, err)
	case readErr != nil:
		b.err = fmt.Errorf("build %s: read what it printed: %w", b.sources, readErr)
	}
	if b.err != nil {
		b.reason = b.err.Error()
		return
	}
	for _, note := range append(losses(last.Rejected, last.Dropped), last.Notes...) {
		fmt.Fprintln(stderr, "note: "+oneLine(note))
	}
	entry, err := textcache.Hold(b.Folder)
	if err != nil {
		b.err, b.reason = err, err.Error()
	} else if entry != nil {
		b.held = entry
	}
}

// info describes the build to the server.
func (b *textBuild) info() serve.BuildInfo {
	return serve.BuildInfo{Source: b.sources, Tokenizer: b.Tokenizer, Done: b.done, Err: func() error {
		if b.err != nil {
			return errors.New(b.reason)
		}
		return nil
	}}
}

// interrupt makes the build stop at a checkpoint.
func (b *textBuild) interrupt() {
	b.stopped.Store(true)
	_ = b.child.Process.Signal(syscall.SIGTERM) // it may have ended
}

// stop ends the build, if it still runs, and releases the dataset.
func (b *textBuild) stop() error {
	select {
	case <-b.done:
	default:
		b.interrupt()
		kill := time.AfterFunc(stopGrace, func() { _ = b.child.Process.Kill() })
		<-b.done
		kill.Stop()
	}
	_ = b.alive.Close() // the child has ended
	if b.held != nil {
		return b.held.Close()
	}
	return nil
}

// openText opens the dataset that is built from text. It returns as soon as there are rows to
// serve, or the build has ended.
func (f *serveFlags) openText(cmd *cobra.Command, sources, flags []string) (*serve.Building, *textBuild, error) {
	if err := f.opts.CheckMemory(); err != nil {
		return nil, nil, err // before the text is built
	}
	if f.stdinLife {
		flags = append(flags, "--progress=none") // a program reads the build's output
	}
	b, err := startTextBuild(cmd, sources, flags)
	if err != nil {
		return nil, nil, err
	}
	f.opts.Datasets, f.opts.Seal = []string{b.Folder}, b.Seal
	reader, err := serve.OpenBuilding(f.opts, b.info())
	if err == nil {
		if err = f.awaitText(cmd.Context(), reader, b); err != nil {
			err = errors.Join(err, reader.Close())
		}
	}
	if err == nil {
		return reader, b, nil
	}
	stopErr := b.stop()
	if b.err != nil {
		return nil, nil, b.err // which the child has printed
	}
	return nil, nil, errors.Join(err, stopErr)
}

// endWithText ends the server after a build that failed, once clients have had --drain to learn why.
func (f *serveFlags) endWithText(ctx context.Context, b *textBuild) error {
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil
	}
	if b.err == nil {
		return nil
	}
	f.opts.Log.Error("the text could not be built: requests are refused with the reason, then the server ends",
		"reason", b.reason, "seconds", f.drain.Seconds())
	timer := time.NewTimer(f.drain)
	defer timer.Stop()
	select {
	case <-timer.C:
		return b.err
	case <-ctx.Done():
		return nil
	}
}

// awaitText waits until there is something to serve.
func (f *serveFlags) awaitText(ctx context.Context, reader *serve.Building, b *textBuild) error {
	if !f.verify {
		return reader.AwaitRows(ctx)
	}
	select { // verifying needs the whole dataset
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
