// Package loader is dsload's two lines, for programs in Go:
//
//	Build:  source -> example -> tokenize -> shard -> manifest
//	Serve:  manifest -> shard -> sampler -> collate -> feed
//
// Build is what the command dsload build does, and Serve what dsload serve does with datasets. The command's
// flags are named as the fields here, and errors and notes name options as the command does: `max-length` is
// MaxLength. Open reads the batches of a dataset, from its folder or from a server. Package shard reads its rows
// in any order, and package export writes them for other programs.
//
// # Errors
//
// An error has a kind, if it is not just a failure of the work: see Error.
//
// # Memory
//
// Each function keeps its parts of the process within a cap in bytes, which it divides before it begins; an
// error says how much is needed if that is more. The caller's own memory is not counted: ExtraBytes takes it
// from a build's cap.
package loader

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"golang.org/x/sync/errgroup"
)

//go:generate go test ../internal/ingest/option -run TestLoaderTypes -update

const (
	// OwnToken, as EOS or BOS, is the token that the tokenizer itself has for it.
	OwnToken = "auto"
	// NoToken, as EOS or BOS, adds none, whatever the default is.
	NoToken = "off"
)

// Error is an error with a kind. errors.As finds it in the errors of this package, and of packages tokenize,
// shard, export and stats:
//
//	var e loader.Error
//	if errors.As(err, &e) && e.Kind() == loader.Interrupted {
//		…
//	}
type Error interface {
	error
	// Kind returns one of the five kinds, or "" for a failure of the work: a disk, a network, a bug.
	Kind() string
}

// The kinds of errors.
const (
	Usage       = "usage"       // what was asked for cannot be done
	Corrupt     = "corrupt"     // input or data is damaged, or not what it claims to be
	Limit       = "limit"       // memory, disk or another limit is too small
	Unreachable = "unreachable" // a server gave no usable answer
	Interrupted = "interrupted" // stopped from outside; the same call resumes
)

// withKind returns an error whose kind errors.As finds.
func withKind(err error) error {
	var e Error
	if kind := fault.KindOf(err); kind != "" && (!errors.As(err, &e) || e.Kind() != kind) {
		return &fault.Error{Class: kind, What: fault.Textf("%v", err), Err: err}
	}
	return err
}

// Build streams sources through a tokenizer into a dataset folder. A build that was interrupted resumes from its
// last checkpoint if the options that change bytes are the same, and the dataset is then the same, byte for
// byte. When ctx ends it writes a checkpoint and returns an error of the kind Interrupted.
func Build(ctx context.Context, o BuildOptions) (*Summary, error) {
	s, err := ingest.Run(ctx, o.options())
	if err != nil {
		return nil, withKind(err)
	}
	return summaryOf(s), nil
}

// hooks returns what a build calls while it runs.
func (o *BuildOptions) hooks() (h option.Hooks) {
	if o.Progress != nil {
		h.Progress = func(p report.Progress) {
			o.Progress(Progress{totalsOf(p.Totals), p.SourceBytes, p.TotalBytes, p.Fraction, p.Elapsed,
				totalsOf(p.Resumed), p.Memory, p.CapBytes, p.Done})
		}
	}
	if o.Notice != nil {
		h.Notice = func(t fault.Text) { o.Notice(t.String()) }
	}
	return h
}

func summaryOf(s *report.Summary) *Summary {
	out := &Summary{
		Out: s.Out, Counts: countsOf(s.Counts), Formats: s.Formats, DocumentEnd: s.DocumentEnd,
		Stopped: s.Stopped.String(), Notes: fault.All(s.Notes, nil), Warnings: fault.All(s.Warnings, nil),
		Added: s.Added, AlreadyBuilt: s.AlreadyBuilt, Resumed: s.Resumed, ResumedAt: s.ResumedAt,
		Partition: s.Partition, Seconds: s.Seconds, MBPerSecond: s.MBPerSecond, TokensPerSecond: s.TokensPerSecond,
		PeakRSSBytes: s.PeakRSSBytes, CapBytes: s.CapBytes,
	}
	for _, split := range s.Splits {
		out.Splits = append(out.Splits, SplitSummary{split.Name, split.Examples, split.Tokens, split.Shards, split.Fill,
			split.LossTokens, split.LossShare})
	}
	if p := s.Packing; p != nil {
		out.Packing = &PackSummary{Pack(p.Policy), p.Length, p.DroppedTokens, p.Truncated}
	}
	return out
}

func totalsOf(t report.Totals) Totals {
	return Totals{countsOf(t.Counts), t.Examples, t.Tokens, t.Train, t.Val}
}

func countsOf(c counts.Counts) Counts {
	return Counts{Numbers(c.Numbers), Unread(c.Unread), c.Shapes, c.Unused, c.Fields, c.CutBy, c.DroppedBy}
}

// ServeOptions configures a server. No field changes a batch.
type ServeOptions struct {
	// Datasets are folders, each as DIR or NAME=DIR. Requests name one by NAME, by default the folder's own
	// name. At least one.
	Datasets []string
	// Socket is the path of the unix socket, which only this user may open.
	Socket string
	// Memory caps the server in bytes. Default 48 MiB, at least 24 MiB.
	Memory int64
	// Drain is how long streams may run on after ctx ended. Default 0: they are cut, and their clients can
	// resume from their last row.
	Drain time.Duration
	// Log is where streams are reported. Default slog.Default().
	Log *slog.Logger
}

// Serve serves the batches of datasets over a unix socket until ctx ends, and returns nil then. The datasets are
// open, and the socket listens, before a request is answered; errors are those of opening either.
func Serve(ctx context.Context, o ServeOptions) error {
	options := serve.Options{Datasets: o.Datasets, Memory: o.Memory, Feed: feed.Options{Log: o.Log}}
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
