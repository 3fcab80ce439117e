package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// A target is what the pipeline makes of the documents: a dataset of its own (whole), more of one (addition),
// a part of one (part), or a plan (scan). The stages do not know which.
type target interface {
	// open finds what there is before the sources are opened, choose narrows what is read of a phase, and
	// opened judges the error of opening it.
	open() error
	choose(phase int, o *source.Options)
	opened(err error) error
	// settings sets what the folder keeps of the settings, in the options of its builder.
	settings() error
	// memory returns how many documents are held out, and the parts of the cap for the target alone.
	memory() (heldOut int64, whyHeldOut string, more []budget.Share)
	// check refuses a folder before its builder is opened; notOpened ends a build for which it was not.
	check() error
	notOpened(ctx context.Context, err error) (*report.Summary, error)

	// begin gives a new flusher what was decided before the first document.
	begin(f *flusher) error
	// isCopy reports whether a document with this key of Dedup is a copy of an earlier one.
	isCopy(f *flusher, ordinal int64, key []byte) (bool, error)
	write(f *flusher, split string, row *shard.Example) error
	// checkpoint makes everything up to the end of the last job durable.
	checkpoint(f *flusher) error
	// interrupted ends a phase that was stopped at the end of a job.
	interrupted(ctx context.Context, f *flusher) error
	finish(f *flusher) (*report.Summary, error)
	// failed ends a build that did not finish.
	failed(builder *shard.Builder, err error) (*report.Summary, error)
	// extraName returns the name that one of a dataset's extra files has in this build.
	extraName(name string) string

	planner
}

// planner is the part of a target that a plan is made with.
type planner interface {
	beginPhase(phase int, p *setup.Phase, r *source.Reader) error
	endPhase(phase int, r *source.Reader, whole bool)
	read.Borders
	// border takes a border after the documents before it.
	border(f *flusher, m *job.Mark)
	// skip reports whether the ids of a document are not needed; skipped, whether a document is not needed
	// once it was routed.
	skip(d *job.Document) bool
	skipped(c *cursor) bool
}

func newTarget(b *build) target {
	switch {
	case b.opts.Append:
		return &addition{whole: whole{b: b}}
	case b.partition != nil:
		return &part{whole: whole{b: b}, Chosen: b.partition}
	}
	return whole{b: b}
}

// whole is the target of a build into a folder of its own. The other targets embed it, and override what differs.
type whole struct {
	b *build
	noPlan
}

func (whole) open() error                 { return nil }
func (whole) choose(int, *source.Options) {}
func (whole) opened(err error) error      { return err }
func (whole) check() error                { return nil }

func (w whole) settings() (err error) {
	w.b.Shards.Settings, err = w.b.Settings()
	return err
}

func (w whole) memory() (heldOut int64, why string, more []budget.Share) {
	n := w.b.opts.MaxValExamples
	if len(w.b.opts.ValSources) > 0 {
		return heldout.MaxShared, fmt.Sprintf("hashes of up to %d documents of the sources of val", heldout.MaxShared), nil
	}
	return n, fmt.Sprintf("hashes of up to %d held-out documents", n), nil
}

func (w whole) notOpened(_ context.Context, err error) (*report.Summary, error) {
	if errors.Is(err, shard.ErrFinished) {
		return w.b.finished()
	}
	return nil, advice.Of(advice.Folder, w.b.Facts(), err)
}

func (whole) begin(f *flusher) error {
	f.openSeen(f.builder.SeenPaths())
	return nil
}

func (whole) isCopy(f *flusher, _ int64, key []byte) (bool, error) { return f.seen.Add(key) }

func (whole) write(f *flusher, split string, row *shard.Example) error {
	return f.builder.Append(split, row)
}

func (whole) checkpoint(f *flusher) error {
	f.state.Held, f.state.Share = f.hold.Hashes(), f.hold.Share
	return f.save()
}

// interrupted keeps everything up to the end of the last job. A folder that holds no rows yet stays open to
// other settings.
func (w whole) interrupted(ctx context.Context, f *flusher) error {
	b := w.b
	if errors.Is(b.readErr, read.ErrMiscounted) {
		return errors.Join(b.readErr, f.builder.Forget())
	}
	if f.begun() {
		if err := b.target.checkpoint(f); err != nil {
			return errors.Join(b.readErr, err)
		}
	}
	if b.readErr != nil && ctx.Err() == nil {
		return b.readErr
	}
	if !f.begun() {
		return fmt.Errorf("build %s: %w before the first example; run the same command again", b.opts.Out,
			ErrInterrupted)
	}
	return fmt.Errorf("build %s: %w at a checkpoint after %s; run the same command again to resume",
		b.opts.Out, ErrInterrupted, units.Plural(f.state.Examples, "example"))
}

func (whole) finish(f *flusher) (*report.Summary, error) {
	if err := f.checkRows(); err != nil {
		return nil, err
	}
	if err := f.writeTokenizer(); err != nil {
		return nil, err
	}
	if held := f.hold.Hashes(); len(held) > 0 { // kept for additions
		data := bytes.NewReader(heldout.File(held))
		if err := f.builder.WriteFile(shard.HeldOutName, data); err != nil {
			return nil, err
		}
	}
	return f.commit(func(*shard.Provenance, map[string]any) {})
}

func (w whole) failed(builder *shard.Builder, err error) (*report.Summary, error) {
	return nil, errors.Join(advice.Of(advice.Rows, w.b.Facts(), err), builder.Close())
}

func (w whole) extraName(name string) string { return w.b.Shards.Part.ExtraName(name) }

// noPlan is the planner of a build that makes no plan.
type noPlan struct{}

func (noPlan) beginPhase(int, *setup.Phase, *source.Reader) error { return nil }
func (noPlan) endPhase(int, *source.Reader, bool)                 {}
func (noPlan) Inside(*source.Position) *job.Mark                  { return nil }
func (noPlan) Between(int, int64) *job.Mark                       { return nil }
func (noPlan) border(*flusher, *job.Mark)                         {}
func (noPlan) skip(*job.Document) bool                            { return false }
func (noPlan) skipped(*cursor) bool                               { return false }
