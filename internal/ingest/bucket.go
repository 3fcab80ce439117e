package ingest

import (
	"context"
	"strings"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/partition"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
)

// runInto is RunPartition for a folder of a bucket.
func runInto(ctx context.Context, o option.Options, p *partition.Chosen) (s *report.Summary, err error) {
	t := store.Target{URI: o.Out, Adds: o.Append, Overwrite: o.Overwrite, Clock: o.Now,
		Notice: func(text string) { o.Noticef("%s", text) }}
	if p != nil {
		t.Part = shard.Part{Number: p.Number, Of: p.Plan.Partitions}
		t.Plan = p.Plan.Seal()
	}
	err = store.Build(ctx, t, func(fsys shard.FS, dir string) (err error) {
		inner := o
		inner.FS, inner.Out = fsys, dir
		b := newBuild(inner, p)
		b.bucket = true
		s, err = b.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Out = strings.TrimRight(o.Out, "/")
	return s, nil
}
