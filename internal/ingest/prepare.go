package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/partition"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
)

func newBuild(o option.Options, p *partition.Chosen) *build {
	b := &build{opts: o, partition: p, resumes: true}
	b.meter.start = o.Now()
	b.target = newTarget(b)
	return b
}

// prepare opens and checks everything that can be wrong before the first byte is written.
func (b *build) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		b.checkMap, b.openTokenizer, b.openCutter, b.openFilter, b.checkOut, b.readTemplate, b.openSources, b.openChat,
		b.checkFields, b.checkTargets, b.renderSettings, b.planMemory,
	} {
		if err := step(ctx); err != nil {
			if closeErr := b.close(); closeErr != nil {
				return errors.Join(err, closeErr)
			}
			return err
		}
	}
	return nil
}

// PlanMemory returns the memory cap as a sum for these options; nothing is built.
func PlanMemory(o option.Options) (*MemoryPlan, error) { return PartitionMemory(o, nil) }

// PartitionMemory is PlanMemory for one partition of a plan; nil stands for all.
func PartitionMemory(o option.Options, p *partition.Chosen) (*MemoryPlan, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := newBuild(o, p)
	b.bucket = remote.Writable(o.Out)
	return b.memoryPlan()
}

// memoryPlan prepares a build for its memory plan alone.
func (b *build) memoryPlan() (*MemoryPlan, error) {
	if err := b.prepare(context.Background()); err != nil {
		return nil, err
	}
	return b.memory, b.close()
}

func (b *build) openTokenizer(ctx context.Context) (err error) {
	o := &b.opts
	if b.tokenizer = o.LoadedTokenizer; b.tokenizer == nil {
		b.tokenizer, err = tokenizers.Open(o.Tokenizer,
			tokenizers.Options{Pattern: o.TokenizerPattern, Memory: o.Memory,
				Done: ctx.Done(), Notice: func(text string) { b.notice("%s", text) }})
	}
	return err
}

func (b *build) openCutter(context.Context) (err error) {
	o := &b.opts
	if b.ends, err = findEnds(o, b.tokenizer); err != nil {
		return err
	}
	b.cutter, err = example.NewCutter(b.cutterOptions())
	var length *example.LengthError
	if errors.As(err, &length) {
		return fault.BadOption("max-length", o.MaxLength,
			"the special tokens of %s alone take %d; write at least %d", b.tokenizer.Name(),
			length.Special, length.Special+1)
	}
	return err
}

func (b *build) checkOut(context.Context) error {
	info, err := b.opts.FS.Stat(b.opts.Out)
	switch {
	case err == nil && !info.IsDir():
		return fault.BadOption("out", b.opts.Out, "it is a file, and a dataset is a folder; name another one")
	case errors.Is(err, syscall.ENOTDIR):
		return fault.BadOption("out", b.opts.Out, "it would lie in a file, not in a folder; name another one")
	}
	return nil
}

// openSources opens the sources of each phase.
func (b *build) openSources(ctx context.Context) error {
	if err := b.target.open(); err != nil {
		return err
	}
	for _, args := range [][]string{b.opts.Sources, b.opts.ValSources} {
		if len(args) == 0 {
			continue
		}
		p, err := b.openPhase(ctx, args)
		if p.set != nil {
			b.phases = append(b.phases, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isPair reports whether fields are a question and its answer.
func isPair(names []string) bool {
	_, answer, _ := chat.PairOf(names)
	return answer != ""
}

func (b *build) openPhase(ctx context.Context, args []string) (phase, error) {
	o := &b.opts
	p := phase{options: source.Options{
		Args: args, Format: o.Format, PieceBytes: job.PieceBytes, MaxPieceBytes: 2 * job.PieceBytes,
		MaxRecordBytes: job.MaxRecordBytes,
		Cut:            b.tokenizer.SafeCut, Whole: b.template != "" || o.JudgesDocuments() || o.Map != "",
		Columns: o.Columns, Delimiter: o.DelimiterByte(), Records: o.Records,
		IsPair:   isPair,
		FindChat: o.TextField == "" && b.template == "" && o.Map == "",
		Stdin:    o.Stdin, Done: ctx.Done(), Notice: func(text string) { b.notice("%s", text) },
		Revision: b.pinned,
		Include:  o.Include, Exclude: o.Exclude, OutDir: o.Out, ScratchDir: existingFolder(o.Out),
		Built: BuiltFiles, Marks: MarksBuild, Conditions: b.conditions(),
		SkipDamaged:   o.OnBadRecord == option.SkipBadRecord,
		MetadataBytes: b.metadataBytes(),
	}}
	if len(b.phases) == 0 {
		p.options.KeepBytes = max(0, o.Memory-keepFrom) / keepShare
	}
	b.target.choose(len(b.phases), &p.options)
	var err error
	p.formatter, err = example.NewFormatter(example.FormatOptions{TextField: o.TextField, Template: b.template,
		TemplateName: o.Template})
	if errors.Is(err, example.ErrTemplate) {
		err = &fault.Error{Class: fault.Usage, Option: "template", What: fault.Textf("%v", err), Err: err}
	}
	if err != nil {
		return p, err
	}
	p.options.TextField, p.options.Fields = p.formatter.StreamedField(), b.withFilterFields(p.formatter.Fields())
	if o.Map != "" && o.Format == source.Chat {
		p.options.Format = source.Auto // it says what comes back from the command
	}
	if o.Format == source.Chat || o.Map != "" { // all fields may be part of the conversation, or of the answer
		p.options.TextField, p.options.Fields = "", nil
	}
	p.set, err = source.Open(ctx, p.options)
	if err = b.target.opened(err); err != nil {
		return p, b.advise(advice.Sources, err)
	}
	return p, nil
}

// BuiltFiles is source.Options.Built.
func BuiltFiles(dir string) (owns func(name string) bool) {
	if shard.HoldsBuild(shard.OS(), dir) {
		return shard.OwnName
	}
	return nil
}

// MarksBuild is source.Options.Marks.
func MarksBuild(name string, head func() []byte) bool {
	return store.MarksBuild(name) || shard.MarksBuild(name, head)
}

// checkTargets returns an error unless the records of all phases make targets, or none do.
func (b *build) checkTargets(context.Context) error {
	hasTarget := b.hasTarget()
	if b.opts.CausalPairs && !hasTarget {
		return fault.BadOption("causal-pairs", nil,
			"there are no targets; give a {template} that defines \"prompt\" and \"target\"")
	}
	for _, p := range b.phases {
		if p.formatter.HasTarget() != hasTarget {
			return fault.BadOption("val", nil,
				"its records make targets and the sources' do not, or the other way round; "+
					"give both the same {format} and {template}")
		}
	}
	return b.checkPackable()
}

// hasTarget reports whether records make a prompt and a target.
func (b *build) hasTarget() bool { return b.phases[0].formatter.HasTarget() }

// renderSettings sets the options of the shards, with the settings that they keep.
func (b *build) renderSettings(context.Context) error {
	o := &b.opts
	b.shards = shard.BuilderOptions{
		Schema: shard.Schema{VocabSize: b.tokenizer.VocabSize(), Labels: b.hasTarget() && !o.CausalPairs,
			LossMask: o.CausalPairs || b.chat != nil && b.chat.Masked(), Segments: o.Pack != pack.None},
		ShardBytes: o.ShardBytes, MaxRowTokens: o.MaxLength, Overwrite: o.Overwrite,
		MayChange: mayChange,
	}
	return b.target.settings()
}

func (b *build) planMemory(context.Context) (err error) {
	if b.memory, err = b.divideMemory(); err != nil {
		return err
	}
	b.shards.MaxShards = b.memory.maxShards
	b.ledger, err = b.memory.ledger()
	return err
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

// readTemplate sets the template to its built-in name, or to the content of its file: the settings
// of a build keep the text, not its path.
func (b *build) readTemplate(context.Context) error {
	name := b.opts.Template
	if b.template = name; name == "" || example.IsBuiltin(name) {
		return nil
	}
	info, err := os.Stat(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		reason := fmt.Sprintf("is not a built-in template (%s) and cannot be read: %v",
			strings.Join(example.Builtins(), ", "), err)
		if strings.Contains(name, "{{") {
			reason += "; it looks like the text of a template: write that into a file, and name the file"
		} else if near := spelling.Nearest(name, example.Builtins()); near != "" {
			reason += "; did you mean " + near + "?"
		} else if near := spelling.NearestFile(name); near != "" {
			reason += "; did you mean " + near + "?"
		}
		return fault.BadOption("template", name, "%v", reason)
	}
	switch {
	case !info.Mode().IsRegular():
		return fault.BadOption("template", name, "is not a file; give a text file, or the name of a built-in template")
	case info.Size() == 0:
		return fault.BadOption("template", name, "the file is empty; write a template into it")
	case info.Size() > example.MaxTemplateBytes:
		return fault.BadOption("template", name,
			"%d bytes are too long for a template, which may have %d", info.Size(),
			example.MaxTemplateBytes)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fault.BadOption("template", name, "%v", err)
	}
	b.template = string(data)
	return nil
}
