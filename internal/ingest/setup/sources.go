package setup

import (
	"context"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
)

// openSources opens the sources of each phase.
func (p *Prepared) openSources(ctx context.Context) error {
	for _, args := range [][]string{p.Options.Sources, p.Options.ValSources} {
		if len(args) == 0 {
			continue
		}
		phase, err := p.openPhase(ctx, args)
		if phase.Set != nil {
			p.Phases = append(p.Phases, phase)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Prepared) openPhase(ctx context.Context, args []string) (phase Phase, err error) {
	o := p.Options
	phase.Formatter, err = example.NewFormatter(example.FormatOptions{TextField: o.TextField, Templates: p.Templates,
		Given: example.Templates{Text: o.Template, Prompt: o.Prompt, Target: o.Target}})
	if err != nil {
		return phase, err
	}
	phase.Options = p.sourceOptions(ctx, args, phase.Formatter)
	if len(p.Phases) == 0 {
		phase.Options.KeepBytes = max(0, o.Memory-keepFrom) / keepShare
	}
	if p.reading.Narrow != nil {
		p.reading.Narrow(len(p.Phases), &phase.Options)
	}
	phase.Set, err = source.Open(ctx, phase.Options)
	if p.reading.Explain != nil {
		err = p.reading.Explain(err)
	}
	if err != nil {
		return phase, advice.Of(advice.Sources, p.Facts(), err)
	}
	return phase, nil
}

// sourceOptions returns how the sources of a phase are read, whose records f formats.
func (p *Prepared) sourceOptions(ctx context.Context, args []string, f *example.Formatter) source.Options {
	o := p.Options
	so := source.Options{
		Args: args, Format: o.Format,
		Framing: source.Framing{PieceBytes: job.PieceBytes, MaxPieceBytes: 2 * job.PieceBytes,
			MaxRecordBytes: job.MaxRecordBytes, Cut: p.Tokenizer.SafeCut,
			Whole:     !p.Templates.IsZero() || o.JudgesDocuments() || o.Map != "",
			TextField: f.StreamedField(), Fields: p.withFilterFields(f.Fields()), AnyOf: f.AnyOf(), Records: o.Records,
			Columns: o.Columns, Delimiter: o.DelimiterByte()},
		Places: source.Places{Stdin: o.Stdin, OutDir: o.Out, ScratchDir: existingFolder(o.Out), Built: BuiltFiles,
			Marks: MarksBuild},
		IsPair: func(names []string) bool { // a question and its answer
			_, answer, _ := chat.PairOf(names)
			return answer != ""
		},
		FindChat: o.TextField == "" && p.Templates.IsZero() && o.Map == "",
		Include:  o.Include, Exclude: o.Exclude, Conditions: p.conditions(),
		Done: ctx.Done(), Notice: func(text string) { o.Noticef("%s", text) }, Revision: p.reading.Revision,
		SkipDamaged: o.OnBadRecord == option.SkipBadRecord, MetadataBytes: p.metadataBytes(),
	}
	if o.Map != "" && o.Format == source.Chat {
		so.Format = source.Auto // it says what comes back from the command
	}
	if o.Format == source.Chat || o.Map != "" { // all fields may be part of the conversation, or of the answer
		so.TextField, so.Fields, so.AnyOf = "", nil, nil
	}
	return so
}

// BuiltFiles is source.Options.Built.
func BuiltFiles(dir string) (owns func(name string) bool) {
	if dataset.HoldsBuild(shardfile.OS(), dir) {
		return shardfile.OwnName
	}
	return nil
}

// MarksBuild is source.Options.Marks.
func MarksBuild(name string, head func() []byte) bool {
	return store.MarksBuild(name) || dataset.MarksBuild(name, head)
}

// existingFolder returns dir, or the nearest folder above it that exists: long lists of sources are
// kept on the file system of the dataset.
func existingFolder(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
