// Package loader is dsload's two lines, for programs in Go:
//
//	Build:  source -> example -> tokenize -> shard -> manifest
//	Serve:  manifest -> shard -> sampler -> collate -> feed
//
// Build is what the command dsload build does, and Serve what dsload serve does with datasets. The
// command's flags are named as the fields here. A dataset's rows can also be read without a server,
// by package shard, and exported by package export.
//
// # Memory
//
// Each function keeps its parts of the process within a cap in bytes, which it divides before it
// begins; an error says how much is needed if that is more. The caller's own memory is not counted:
// Resources.ExtraBytes takes it from a build's cap.
package loader

import (
	"context"
	"log/slog"
	"time"

	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"golang.org/x/sync/errgroup"
)

type (
	// BuildOptions configures a build: Settings, on which the bytes of the dataset depend, Out, its
	// folder, and Resources and Hooks, which change no byte. The zero value of a field is its default.
	BuildOptions = option.Options
	// Settings are what is built: sources, tokenizer, lengths, filters and budgets.
	Settings = option.Settings
	// Resources are what a build may use: Memory in bytes, Workers, and when it writes checkpoints.
	Resources = option.Resources
	// Hooks are called while a build runs.
	Hooks = option.Hooks
	// Summary is what a build made, and what it left out.
	Summary = report.Summary
)

// Build streams sources through a tokenizer into a dataset folder. A build that was interrupted
// resumes from its last checkpoint if its Settings are the same, and the dataset is then the same,
// byte for byte. When ctx ends it writes a checkpoint and returns an error.
func Build(ctx context.Context, o BuildOptions) (*Summary, error) { return ingest.Run(ctx, o) }

// ServeOptions configures a server.
type ServeOptions struct {
	// Datasets are folders, each as DIR or NAME=DIR. Requests name one by NAME, by default the
	// folder's own name.
	Datasets []string
	// Socket is the path of the unix socket, which only this user may open.
	Socket string
	// Memory caps the server in bytes. Default 48 MiB, at least 24 MiB.
	Memory int64
	// Drain is how long streams may run on after ctx ended. Default 0: they are cut, and their
	// clients can resume from their last row.
	Drain time.Duration
	// Log is where streams are reported. Default slog.Default().
	Log *slog.Logger
}

// Serve serves the batches of datasets over a unix socket until ctx ends, and returns nil then. The
// datasets are open, and the socket listens, before a request is answered; errors are those of
// opening either.
func Serve(ctx context.Context, o ServeOptions) error {
	options := serve.Options{Datasets: o.Datasets, Memory: o.Memory, Log: o.Log}
	reader, err := serve.Open(options)
	if err != nil {
		return err
	}
	defer reader.Close()
	server, err := serve.NewServer(reader, options)
	if err != nil {
		return err
	}
	socket, err := feed.ListenUnix(o.Socket)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(socket) })
	group.Go(func() error {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
		defer cancel()
		server.Shutdown(limit)
		return nil
	})
	return group.Wait()
}
