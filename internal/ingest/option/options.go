// Package option is what people choose about a build: the options as fields with their defaults, and a
// table with a row for each, from which flags, help, completion, manual pages and Python's types are
// made. Settings are those on which the bytes of a dataset depend.
//
// Options enter a build once, through WithDefaults and Validate, and are not changed by it.
package option

import (
	"cmp"
	"io"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/tokenize"
)

// Options configures a build. The zero value of a field is its default.
type Options struct {
	Settings
	// Out is the dataset folder, or that of a bucket: s3://BUCKET/PATH, gs:// or az://.
	Out string
	// Overwrite starts afresh in a folder that holds another build.
	Overwrite bool
	// Append adds the sources to the finished dataset in Out, with the settings that it was built
	// with. Budgets count the addition alone. With it, Overwrite discards an unfinished addition
	// and nothing else.
	Append bool
	// Given lists the options that Append does not take from the dataset, but compares with it. Default: those
	// with a value that is not zero.
	Given []string
	// Inherited lists those that Append has taken. Templates among them are texts.
	Inherited []string
	Resources
	Hooks
}

// Resources are what a build works with. They do not change the bytes of the dataset.
type Resources struct {
	// Memory caps the whole process in bytes. Default: 256 MiB, or half of what the machine or its container
	// has if that is less.
	Memory int64
	// ExtraBytes is what the process holds besides the build, in bytes. It is taken from Memory.
	ExtraBytes int64
	// Workers is the number of tokenizing goroutines. Default: the processors that the process may use.
	Workers int
	// CheckpointEvery is the number of examples after which a checkpoint is due, though not more often than
	// twice a second.
	CheckpointEvery int64
	// CheckpointInterval is the shortest time between checkpoints. Default
	// defaultCheckpointInterval.
	CheckpointInterval time.Duration
	// LoadedTokenizer, where set, is the tokenizer that the settings name.
	LoadedTokenizer *tokenize.Tokenizer
	// Stdin is what the source "-" reads. Default: none, and "-" is refused.
	Stdin io.Reader
	// FS is the file system that the dataset is written to. Default: the operating system's.
	FS shardfile.FS
	// Discarded says that Out is removed once the build has ended, so that the same build resumes nothing.
	Discarded bool
	// Now is the clock for checkpoints and for the times in run.json. Default: time.Now.
	Now func() time.Time
}

// Place names the dataset in errors: by its folder, or by the sources where that is discarded.
func (o *Options) Place() string {
	if o.Discarded {
		return uris.Several(o.Sources)
	}
	return o.Out
}

// Hooks are called while a build runs, where they are set.
type Hooks struct {
	// Progress is called a few times a second from one goroutine.
	Progress func(report.Progress)
	// Notice is called with what a user wants to know while the build runs: the format that was
	// found, where an earlier run is resumed.
	Notice func(fault.Text)
	// Resuming is called once where an earlier run of the same build is resumed, with what it had
	// done.
	Resuming func(report.Totals)
	// Monitor shows the build while it runs.
	Monitor *report.Monitor
}

// SpecialTokens is what the tokens of a tokenizer's post-processor go around.
type SpecialTokens string

const (
	SpecialOfDocument SpecialTokens = "document" // once around a document
	SpecialOfChunk    SpecialTokens = "chunk"    // around each example of a document
)

// OnBadRecord is what happens at a record that cannot be used.
type OnBadRecord string

const (
	FailAtBadRecord OnBadRecord = "fail" // the build ends with it
	SkipBadRecord   OnBadRecord = "skip" // it is left out, counted and listed
)

// BadRecordPolicies are all values of OnBadRecord.
var BadRecordPolicies = []OnBadRecord{FailAtBadRecord, SkipBadRecord}

const (
	// OwnToken, as EOS or BOS, is the token that the tokenizer itself has for it.
	OwnToken = "auto"
	// NoToken, as EOS or BOS, adds none, whatever the default is.
	NoToken = "off"
	// DefaultSource is what a build without sources reads: generated text, so that the first
	// command works without a network.
	DefaultSource = "synth://wikitext?seed=1"
	// DefaultMaxExamples is the limit of a trial without sources, so that it ends in seconds. Programs set it.
	DefaultMaxExamples = 30000
	// defaultCheckpointInterval bounds what syncing costs: a sync takes milliseconds, a thousand
	// examples take less.
	defaultCheckpointInterval = 500 * time.Millisecond
)

// Defaults returns the options that a zero Options stands for.
func Defaults() Options { return Options{}.WithDefaults() }

// WithDefaults returns the options with a value for each that is not set.
func (o Options) WithDefaults() Options {
	if o.Append && o.Given == nil {
		o.Given = []string{}
		for _, opt := range table {
			if !reflect.ValueOf(opt.field(&o)).Elem().IsZero() {
				o.Given = append(o.Given, opt.Name)
			}
		}
	}
	if len(o.Sources) == 0 && !o.Append {
		o.Sources = []string{DefaultSource}
	}
	o.Out = cmp.Or(o.Out, "./dsload-data")
	o.Tokenizer = cmp.Or(o.Tokenizer, "gpt2")
	o.Format = cmp.Or(o.Format, source.Auto)
	o.MaxLength = cmp.Or(o.MaxLength, 512)
	if policy, ok := pack.Parse(string(cmp.Or(o.Pack, pack.None))); ok {
		o.Pack = policy
	}
	o.Overflow = cmp.Or(o.Overflow, overflowOf(o.Pack))
	o.TrainOn = cmp.Or(o.TrainOn, chat.TrainAssistant)
	o.Reasoning = cmp.Or(o.Reasoning, chat.KeepReasoning)
	o.ShardBytes = cmp.Or(o.ShardBytes, 64<<20)
	o.Memory = cmp.Or(o.Memory, resident.DefaultMemory())
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 1000)
	o.OnBadRecord = cmp.Or(o.OnBadRecord, FailAtBadRecord)
	o.SpecialTokens = cmp.Or(o.SpecialTokens, SpecialOfDocument)
	o.Dedup = cmp.Or(o.Dedup, filter.None)
	o.Sample = cmp.Or(o.Sample, 1)
	o.CheckpointInterval = cmp.Or(o.CheckpointInterval, defaultCheckpointInterval)
	if o.FS == nil {
		o.FS = shardfile.OS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Inherit takes the settings of a dataset that are shared by its additions, but for those that are Given.
func (o *Options) Inherit(s Settings, own []string) {
	from := Options{Settings: s}
	from.EOS, from.BOS = cmp.Or(s.EOS, NoToken), cmp.Or(s.BOS, NoToken)
	if s.Pack != "" {
		from.Overflow = "" // the policy decides
	}
	for _, opt := range table {
		if !opt.ChangesBytes() || slices.Contains(own, opt.Name) || slices.Contains(o.Given, opt.Name) {
			continue
		}
		reflect.ValueOf(opt.field(o)).Elem().Set(reflect.ValueOf(opt.field(&from)).Elem())
		o.Inherited = append(o.Inherited, opt.Name)
	}
	if o.Inherits("chat-template") {
		o.ToolTemplate = cmp.Or(s.ToolTemplate, s.ChatTemplate)
	}
}

// Inherits reports whether the value of an option is that of the dataset which is added to.
func (o *Options) Inherits(name string) bool { return slices.Contains(o.Inherited, name) }

// overflowOf returns what a policy does with longer documents.
func overflowOf(p pack.Policy) example.Overflow {
	if p == pack.BFD {
		return example.Truncate
	}
	return example.Chunk
}

// DelimiterByte returns the option Delimiter as a byte, 0 for the default. For a value that Validate
// refuses, the result has no meaning.
func (o *Options) DelimiterByte() byte {
	switch o.Delimiter {
	case "":
		return 0
	case `\t`:
		return '\t'
	}
	return o.Delimiter[0]
}

// JudgesDocuments reports whether documents are judged, and so wanted whole.
func (o *Options) JudgesDocuments() bool { return o.Filter.Active() || o.Dedup != filter.None }

// BudgetOf returns the value of a budget by its name.
func (o *Options) BudgetOf(name string) int64 {
	return map[string]int64{"max-examples": o.MaxExamples, "max-val-examples": o.MaxValExamples,
		"max-bytes": o.MaxBytes, "max-tokens": o.MaxTokens}[name]
}

// Noticef reports something to the user while the build runs.
func (h *Hooks) Noticef(format string, args ...any) {
	if h.Notice != nil {
		h.Notice(fault.Textf(format, args...))
	}
}

// Same is the advice to run the same command again, so that it resumes.
func (o *Options) Same() fault.Text {
	if o.Overwrite {
		return fault.Textf("run the same command again without {overwrite}")
	}
	return fault.Plain("run the same command again")
}
