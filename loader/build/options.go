package build

import (
	"cmp"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/loader/build/example"
	"github.com/dsload/dsload/loader/build/example/chat"
	"github.com/dsload/dsload/loader/build/shape"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/loader/pack"
	"github.com/dsload/dsload/loader/remote"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// Options configures a build. The zero value of a field is its default. "Output" marks the fields
// that may change the bytes of the dataset.
type Options struct {
	// Sources are paths, globs, folders, https:// or synth:// addresses, or "-", read in this order.
	// Output.
	// Default: DefaultSource.
	Sources []string
	// Include and Exclude are globs that choose among the files of folders and globs; what Exclude
	// matches is left out. Output. Default: all that hold text.
	Include, Exclude []string
	// ValSources, where given, make the split "val" from their own documents instead of holding
	// some out. Output.
	ValSources []string
	// Out is the dataset folder, or that of a bucket: s3://BUCKET/PATH or gs://BUCKET/PATH. Default
	// "./dsload-data".
	Out string `json:"-"`
	// Tokenizer is a built-in name, a folder or a file. Output. Default "gpt2".
	Tokenizer string
	// TokenizerPattern is the split of a .tiktoken file that does not name its own: a name of
	// tokenize.PatternNames or a regular expression. Output.
	TokenizerPattern string
	// LoadedTokenizer, where set, is used instead of loading Tokenizer, which then only names it.
	// Output.
	LoadedTokenizer *tokenize.Tokenizer `json:"-"`

	// Format of the sources. Output. Default source.Auto.
	Format source.Format
	// TextField is the field of a record that holds the text, as example.ParseFieldPaths reads it:
	// a.b[0] reaches inside, and several separated by commas are joined by a blank line. Output.
	// Default "text".
	TextField string
	// Columns are the names of the columns of CSV without a header. Output. Default: the header's.
	Columns []string
	// Delimiter separates the fields of CSV: one ASCII character, or "\t" written as two. Output.
	// Default: the comma, semicolon or tab that the first line has most of.
	Delimiter string
	// Template is a built-in name or a file that turns a record into prompt and target. Output.
	Template string
	// CausalPairs puts prompt and target into one row, with a loss mask that is true for the
	// target: for decoder-only models. It needs a Template that makes targets. Output.
	CausalPairs bool

	// ChatTemplate is a file with a Jinja template for conversations, or the name of one of the
	// tokenizer's. Output. Default: the tokenizer's own.
	ChatTemplate string
	// TrainOn is whose turns of a conversation carry loss. Output. Default chat.TrainAssistant.
	TrainOn chat.TrainOn
	// Date, as 2006-01-02, is what a chat template prints as today's. Output. Default: none, and a
	// template that asks for it is refused.
	Date string
	// Filter selects the documents that stay, by their fields, text and length. Output. Default:
	// all.
	Filter shape.Options
	// Dedup selects which copies of earlier documents are left out. Output. Default shape.None.
	Dedup shape.Dedup

	// EOS is the token that follows each document, and BOS the one that precedes it: an id, a token
	// as the vocabulary writes it, OwnToken for the tokenizer's own, or NoToken; "" adds none, except
	// that packed documents end with the tokenizer's own EOS if it has one. Where the tokenizer's
	// post-processor adds the same token it is not added again. Output.
	EOS, BOS string
	// SpecialTokens is what the post-processor's tokens go around. Output. Default
	// SpecialOfDocument.
	SpecialTokens SpecialTokens

	// MaxExamples is the limit of examples in the split "train"; 0 sets none. Output.
	MaxExamples int64
	// MaxValExamples is the number of examples held out for "val", or the limit of ValSources.
	// Output.
	MaxValExamples int64
	// MaxBytes is the limit of text in bytes (UTF-8, after decoding and templates); 0 sets none.
	// Output.
	MaxBytes int64
	// MaxTokens is the limit of tokens over all splits, labels included; 0 sets none. Output.
	MaxTokens int64
	// MaxLength is the longest example in tokens. Output. Default 512.
	MaxLength int
	// Overflow is what happens to the rest of a longer document. Output. Default example.Chunk, or
	// what Pack does.
	Overflow example.Overflow

	// Pack fills rows to MaxLength with several documents. Output. Default pack.None.
	Pack pack.Policy

	// ShardBytes is the size at which a shard is closed. Output. Default 64 MiB.
	ShardBytes int64
	// Memory caps the whole process in bytes. Default: DefaultMemory.
	Memory int64 `json:"-"`
	// Workers is the number of tokenizing goroutines. Default: the CPU quota.
	Workers int `json:"-"`
	// CheckpointEvery is the number of examples after which a checkpoint is due. Default 1000.
	CheckpointEvery int64
	// OnBadRecord is what happens at a bad record. A build that failed at one may be resumed with
	// SkipBadRecord. Output. Default FailAtBadRecord.
	OnBadRecord OnBadRecord
	// Overwrite starts afresh in a folder that holds another build.
	Overwrite bool `json:"-"`
	// Append adds the sources to the finished dataset in Out, with the settings that it was built
	// with. Budgets are of the addition alone. With it, Overwrite gives up an unfinished addition
	// and nothing else. Output.
	Append bool
	// Partition, where set, is the one of a plan that is built; the options marked "Output" are then
	// those of the plan.
	Partition *Partition `json:"-"`

	// Stdin is what the source "-" reads.
	Stdin io.Reader `json:"-"`
	// FS is the file system that the dataset is written to. Default: the operating system's.
	FS shard.FS `json:"-"`
	// Progress, where set, is called a few times a second from one goroutine while a build runs.
	Progress func(Progress) `json:"-"`
	// Notice, where set, is called with what a user wants to know while the build runs: the format
	// that was found, where an earlier run is resumed.
	Notice func(fault.Text) `json:"-"`
	// Resuming, where set, is called once where an earlier run of the same build is resumed, with what
	// it had done.
	Resuming func(Totals) `json:"-"`
	// Monitor, where set, shows the build while it runs.
	Monitor *Monitor `json:"-"`
	// Beside is what the process holds besides the build, such as a page that shows it, in bytes. It
	// is taken from Memory.
	Beside int64 `json:"-"`
	// checkpointInterval is the shortest time between checkpoints. Default
	// defaultCheckpointInterval; tests set it to a nanosecond.
	checkpointInterval time.Duration
	// packWindow is the window of packing in tokens. Default windowTokens; tests set it lower. Output.
	packWindow int64
	// clock is time.Now except in tests. It decides when checkpoints are taken and what run.json
	// says, and nothing else.
	clock func() time.Time
	// partitions is the number of partitions while a plan is made, else 0.
	partitions int
	// bucket is set while Out is the scratch folder of a build into a bucket.
	bucket bool
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
	// defaultCheckpointInterval bounds what syncing costs: a sync takes milliseconds, a thousand
	// examples take less.
	defaultCheckpointInterval = 500 * time.Millisecond
)

// Defaults returns the options that a zero Options stands for.
func Defaults() Options { return Options{}.withDefaults() }

func (o Options) withDefaults() Options {
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
	o.ShardBytes = cmp.Or(o.ShardBytes, 64<<20)
	o.Memory = cmp.Or(o.Memory, loader.DefaultMemory())
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 1000)
	o.OnBadRecord = cmp.Or(o.OnBadRecord, FailAtBadRecord)
	o.SpecialTokens = cmp.Or(o.SpecialTokens, SpecialOfDocument)
	o.Dedup = cmp.Or(o.Dedup, shape.None)
	o.checkpointInterval = cmp.Or(o.checkpointInterval, defaultCheckpointInterval)
	if o.FS == nil {
		o.FS = shard.OS()
	}
	if o.clock == nil {
		o.clock = time.Now
	}
	return o
}

const (
	maxMaxLength = 1 << 24
	maxWorkers   = 1024
)

func (o Options) validate() error {
	for _, err := range []error{
		oneOf("overflow", o.Overflow, example.Overflows),
		oneOf("on-bad-record", o.OnBadRecord, BadRecordPolicies),
		oneOf("format", o.Format, source.Formats),
		oneOf("train-on", o.TrainOn, chat.TrainOns),
		o.checkChat(),
		oneOf("dedup", o.Dedup, shape.Dedups),
		oneOf("special-tokens", o.SpecialTokens, []SpecialTokens{SpecialOfDocument, SpecialOfChunk}),
		atLeast("max-examples", o.MaxExamples, 0),
		atLeast("max-val-examples", o.MaxValExamples, 0),
		atLeast("max-bytes", o.MaxBytes, 0),
		atLeast("max-tokens", o.MaxTokens, 0),
		atLeast("max-length", int64(o.MaxLength), 1),
		atLeast("shard-bytes", o.ShardBytes, 1),
		atLeast("workers", int64(o.Workers), 1),
		atLeast("checkpoint-every", o.CheckpointEvery, 1),
		checkOutAddress(o.Out),
		o.checkStdin(),
		o.checkAppend(),
		o.checkTextField(),
		o.checkCSV(),
		atMost("max-length", o.MaxLength, maxMaxLength),
		atMost("workers", o.Workers, maxWorkers),
		o.checkPack(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func oneOf[T ~string](option fault.Option, value T, allowed []T, aliases ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fault.BadOption(option, string(value), "%v", loader.OneOf(string(value), allowed, aliases...))
}

func atLeast(option fault.Option, value, least int64) error {
	if value >= least {
		return nil
	}
	return fault.BadOption(option, value, "must be at least %d", least)
}

func atMost(option fault.Option, value, most int) error {
	if value <= most {
		return nil
	}
	return fault.BadOption(option, value, "must be at most %d", most)
}

func checkOutAddress(out string) error {
	scheme, _, isURL := strings.Cut(out, "://")
	if !isURL || strings.ContainsAny(scheme, `/\`) {
		return nil
	}
	if remote.Writable(out) {
		if err := remote.CheckFolder(out); err != nil {
			return fault.BadOption("out", out, "%v", err)
		}
		return nil
	}
	return fault.BadOption("out", out, "addresses of kind %s:// cannot be written; "+
		"name a folder, s3:// or gs://", scheme)
}

// checkStdin refuses standard input as a source of both splits.
func (o Options) checkStdin() error {
	if slices.Contains(o.Sources, "-") && slices.Contains(o.ValSources, "-") {
		return fault.BadOption("val", "-", "standard input is a source already; it can be read only once")
	}
	return nil
}
