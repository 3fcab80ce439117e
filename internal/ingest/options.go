package ingest

import (
	"cmp"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/shape"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// Options configures a build. The zero value of a field is its default.
type Options struct {
	Settings
	// Out is the dataset folder, or that of a bucket: s3://BUCKET/PATH or gs://BUCKET/PATH. Default
	// "./dsload-data".
	Out string
	// Overwrite starts afresh in a folder that holds another build.
	Overwrite bool
	// Append adds the sources to the finished dataset in Out, with the settings that it was built
	// with. Budgets count the addition alone. With it, Overwrite discards an unfinished addition
	// and nothing else.
	Append bool
	// Partition, where set, is the one of a plan that is built; the settings are then those of the
	// plan.
	Partition *Partition
	Resources
	Hooks
}

// Resources are what a build works with. They do not change the bytes of the dataset.
type Resources struct {
	// Memory caps the whole process in bytes. Default: DefaultMemory.
	Memory int64
	// ExtraBytes is what the process holds besides the build, such as a page that shows it. It is
	// taken from Memory.
	ExtraBytes int64
	// Workers is the number of tokenizing goroutines. Default: the CPU quota.
	Workers int
	// CheckpointEvery is the number of examples after which a checkpoint is due. Default 1000.
	CheckpointEvery int64
	// CheckpointInterval is the shortest time between checkpoints. Default
	// defaultCheckpointInterval.
	CheckpointInterval time.Duration
	// LoadedTokenizer, where set, is the tokenizer that the settings name.
	LoadedTokenizer *tokenize.Tokenizer
	// Stdin is what the source "-" reads.
	Stdin io.Reader
	// FS is the file system that the dataset is written to. Default: the operating system's.
	FS shard.FS
	// Now is the clock for checkpoints and for the times in run.json. Default: time.Now.
	Now func() time.Time
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
	o.Memory = cmp.Or(o.Memory, resident.DefaultMemory())
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 1000)
	o.OnBadRecord = cmp.Or(o.OnBadRecord, FailAtBadRecord)
	o.SpecialTokens = cmp.Or(o.SpecialTokens, SpecialOfDocument)
	o.Dedup = cmp.Or(o.Dedup, shape.None)
	o.Sample = cmp.Or(o.Sample, 1)
	o.CheckpointInterval = cmp.Or(o.CheckpointInterval, defaultCheckpointInterval)
	if o.FS == nil {
		o.FS = shard.OS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	for _, opt := range options {
		if err := opt.Check(&o); err != nil {
			return err
		}
	}
	for _, check := range []func() error{o.checkChat, o.checkOut, o.checkStdin, o.checkAppend, o.checkTextField,
		o.checkRecords, o.checkCSV, o.checkPack} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkOut returns an error for an address that cannot be written.
func (o Options) checkOut() error {
	out := o.Out
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

// checkStdin returns an error if standard input is a source of both splits.
func (o Options) checkStdin() error {
	if slices.Contains(o.Sources, "-") && slices.Contains(o.ValSources, "-") {
		return fault.BadOption("val", "-", "standard input is a source already; it can be read only once")
	}
	return nil
}
