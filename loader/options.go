// Code generated from packages option, report and counts by go generate; DO NOT EDIT.

package loader

import (
	"io"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
)

// BuildOptions configures a build. The zero value of a field is its default. The dataset's bytes depend on the content
// of the sources and on the fields that say so, and on nothing else.
type BuildOptions struct {
	// Sources are paths, globs, folders, addresses (https://, s3://, gs://, hf://datasets/…, synth://), or "-" for
	// Stdin, read in this order. Default: the generated text synth://wikitext?seed=1, which has no end. Changes the
	// bytes.
	Sources []string
	// Out is the dataset folder, or that of a bucket: s3://BUCKET/PATH, gs:// or az://. Default "./dsload-data". Changes
	// no byte.
	Out string
	// Tokenizer is a built-in name, a folder, a tokenizer.json, .tiktoken or .model file, or hf://OWNER/NAME. Default
	// "gpt2". Changes the bytes.
	Tokenizer string
	// TokenizerPattern is how a .tiktoken file splits text: gpt2, cl100k, o200k, llama3, qwen2, kimi or a regular
	// expression. Default: what its number of ranks says. Changes the bytes.
	TokenizerPattern string
	// Format is that of the sources. Default FormatAuto. Changes the bytes.
	Format Format
	// TextField is the field of a record that holds the text: a.b[0] reaches inside, a|b is the first that the record
	// has, and several, separated by commas, are joined by a blank line. Default "text". Changes the bytes.
	TextField string
	// Records is where the records of JSON files lie: the elements of the array at this path, such as data or a.b; "." is
	// the top. Default: found where there is one array of objects. Changes the bytes.
	Records string
	// Columns are the names of the columns of CSV without a header. Default: its first line. Changes the bytes.
	Columns []string
	// Delimiter separates the fields of CSV: one ASCII character, or "\t" written as two. Default: the comma, semicolon,
	// tab or bar that is most frequent in the first line. Changes the bytes.
	Delimiter string
	// Include lists globs, by name or by path from the folder: of folders and globs among the sources only the files that
	// one of them matches are read. Default: all that hold text. Changes the bytes.
	Include []string
	// Exclude lists globs of files and folders that are left out. Changes the bytes.
	Exclude []string
	// Map is a shell command through which all records go: it answers each line of its standard input, a JSON object,
	// with one, and what it answers is the record; null leaves it out. Default: none. Changes the bytes.
	Map string
	// Template makes the text of a record: a Jinja template, as text or in a file, or the name of a built-in one. With
	// the blocks prompt and target it makes both. Default: the text is in TextField. Changes the bytes.
	Template string
	// Prompt makes the prompt of a pair, in place of Template: a Jinja template, as text or in a file. It needs Target.
	// Changes the bytes.
	Prompt string
	// Target makes the target of a pair, as Prompt makes the prompt. Changes the bytes.
	Target string
	// CausalPairs puts prompt and target into one row, with a loss mask that is true for the target: for decoder-only
	// models. It needs prompts and targets. Changes the bytes.
	CausalPairs bool
	// ChatTemplate is a file with a Jinja template for conversations, or the name of a built-in one or of one of the
	// tokenizer's. Default: the tokenizer's own. Changes the bytes.
	ChatTemplate string
	// TrainOn is whose turns of a conversation carry loss. Default TrainOnAssistant. Changes the bytes.
	TrainOn TrainOn
	// Reasoning is what becomes of a model's reasoning. Default ReasoningKeep. Changes the bytes.
	Reasoning Reasoning
	// SplitTurns makes a row of each turn of the assistant, with what comes before it. Changes the bytes.
	SplitTurns bool
	// Roles are pairs such as "customer=user": a role of messages, and the one that it means. Changes the bytes.
	Roles []string
	// Date, as 2006-01-02, is what a chat template prints as today's. Default: none, and a template that asks for it is
	// refused. Changes the bytes.
	Date string
	// EOS is the token that follows each document: an id, a token as the vocabulary writes it, OwnToken for the
	// tokenizer's own, or NoToken. Default: none, but packed documents end with the tokenizer's own if it has one. Where
	// its post-processor adds the same token it is not added again. Changes the bytes.
	EOS string
	// BOS is the token that precedes each document, as EOS takes it. Default: none. Changes the bytes.
	BOS string
	// SpecialTokens is what the tokens of the tokenizer's post-processor go around. Default SpecialTokensDocument.
	// Changes the bytes.
	SpecialTokens SpecialTokens
	// Where are conditions on fields: FIELD, one of =, !=, >=, <=, > and <, and VALUE. A document stays if, for every
	// FIELD named, its value equals one of the VALUEs given with =, and meets all other conditions. Numbers are compared
	// as numbers, else texts. A record without the FIELD meets none. Changes the bytes.
	Where []string
	// Match lists regular expressions (RE2 syntax) of which all must match the text. Changes the bytes.
	Match []string
	// NoMatch lists regular expressions of which none may match the text. Changes the bytes.
	NoMatch []string
	// MinChars is the least length of a document in characters (code points); 0 sets none. Changes the bytes.
	MinChars int64
	// MaxChars is the greatest length of a document in characters (code points); 0 sets none. Changes the bytes.
	MaxChars int64
	// Sample is the share of all texts that stays, chosen by their content. Above 0 and at most 1, which is the default.
	// Changes the bytes.
	Sample float64
	// Dedup selects which copies of earlier documents are left out. Default DedupNone. Changes the bytes.
	Dedup Dedup
	// MaxExamples is the limit of examples in the split "train"; 0 sets none. Changes the bytes.
	MaxExamples int64
	// MaxValExamples is the number of examples held out for "val", or the limit of ValSources. Changes the bytes.
	MaxValExamples int64
	// ValSources, if set, are the sources of the split "val", in place of examples held out. Changes the bytes.
	ValSources []string
	// MaxBytes is the limit of text in bytes (UTF-8, after decoding and templates); 0 sets none. Changes the bytes.
	MaxBytes int64
	// MaxTokens is the limit of tokens over all splits, labels included; 0 sets none. Changes the bytes.
	MaxTokens int64
	// MaxLength is the longest example in tokens. Default 512. From 1 to 16777216. Changes the bytes.
	MaxLength int
	// Overflow is what happens to the rest of a longer document. With Pack it is left unset, because Pack decides that.
	// Default OverflowChunk. Changes the bytes.
	Overflow Overflow
	// Pack fills rows to MaxLength with several documents. Default PackNone. Changes the bytes.
	Pack Pack
	// ShardBytes is the size in bytes at which a shard is closed. Default 64MiB. From 4KiB to 64GiB. Changes the bytes.
	ShardBytes int64
	// Memory caps the whole process in bytes. Default: 256 MiB, or half of what the machine or its container has if that
	// is less. Changes no byte.
	Memory int64
	// Workers is the number of tokenizing goroutines. Default: the processors that the process may use. From 1 to 1024.
	// Changes no byte.
	Workers int
	// CheckpointEvery is the number of examples after which a checkpoint is due, though not more often than twice a
	// second. Default 1000. Changes no byte.
	CheckpointEvery int64
	// OnBadRecord is what happens at a bad record. A build that failed at one may be resumed with "skip". Default
	// OnBadRecordFail. Changes the bytes.
	OnBadRecord OnBadRecord
	// Overwrite starts afresh in a folder that holds another build. Changes no byte.
	Overwrite bool
	// Append adds the sources to the finished dataset in Out, with the settings that it was built with. Budgets count the
	// addition alone. With it, Overwrite discards an unfinished addition and nothing else.
	Append bool
	// ExtraBytes is what the process holds besides the build, in bytes. It is taken from Memory. Changes no byte.
	ExtraBytes int64
	// Stdin is what the source "-" reads. Default: none, and "-" is refused. Changes no byte.
	Stdin io.Reader

	// Progress, if set, is called a few times a second from one goroutine. Changes no byte.
	Progress func(Progress)
	// Notice, if set, is called with what a user wants to know while the build runs: the format that was
	// found, where an earlier run is resumed. Changes no byte.
	Notice func(string)
}

// Format is how the records of an input are framed.
type Format string

// The values of Format.
const (
	FormatAuto     Format = "auto"
	FormatText     Format = "text"     // a document a line; lines of white space only are skipped
	FormatDocument Format = "document" // a document a file
	FormatWikitext Format = "wikitext" // an article a document
	FormatJSONL    Format = "jsonl"    // a JSON object a line
	FormatJSON     Format = "json"     // an array of JSON objects, or objects one after another
	FormatChat     Format = "chat"     // a JSON object a line that holds a conversation
	FormatCSV      Format = "csv"      // RFC 4180; comma, semicolon, tab, bar or another delimiter
	FormatParquet  Format = "parquet"  // a row of a parquet file
	FormatArrow    Format = "arrow"    // a row of an Arrow IPC file or stream
	FormatDataset  Format = "dataset"  // a row of a folder that datasets' save_to_disk wrote
	FormatTar      Format = "tar"      // the files of a tar archive, each by its own format
	FormatRecipes  Format = "recipes"  // CSV with RecipeNLG's columns
)

// TrainOn says whose turns carry loss.
type TrainOn string

// The values of TrainOn.
const (
	TrainOnAssistant TrainOn = "assistant" // every turn of the assistant
	TrainOnLast      TrainOn = "last"      // the last of them
	TrainOnAll       TrainOn = "all"       // every token
)

// Reasoning says what becomes of a model's reasoning. It is in a field of its own, or in a content before what ends
// it, such as </think>, as the template itself would find it there.
type Reasoning string

// The values of Reasoning.
const (
	ReasoningKeep Reasoning = "keep" // it stays where the template writes it
	ReasoningMask Reasoning = "mask" // the same text, without loss on it
	ReasoningDrop Reasoning = "drop" // the template does not see it
)

// SpecialTokens is what the tokens of a tokenizer's post-processor go around.
type SpecialTokens string

// The values of SpecialTokens.
const (
	SpecialTokensDocument SpecialTokens = "document" // once around a document
	SpecialTokensChunk    SpecialTokens = "chunk"    // around each example of a document
)

// Dedup selects which copies of documents are dropped.
type Dedup string

// The values of Dedup.
const (
	DedupNone  Dedup = "none"  // all copies stay
	DedupExact Dedup = "exact" // equal texts
	DedupNear  Dedup = "near"  // texts with nearly the same words
)

// Overflow is what happens to a document that is longer than an example may be.
type Overflow string

// The values of Overflow.
const (
	OverflowChunk    Overflow = "chunk"    // the rest becomes further examples
	OverflowTruncate Overflow = "truncate" // the rest is dropped; special tokens stay
	OverflowDrop     Overflow = "drop"     // the whole document is dropped
)

// Pack is how rows are filled.
type Pack string

// The values of Pack.
const (
	PackNone     Pack = "none"      // each item is a separate row
	PackWrapped  Pack = "wrapped"   // one item after another, cut anywhere
	PackBFD      Pack = "bfd"       // best fit decreasing of whole items; longer ones are truncated
	PackBFDSplit Pack = "bfd_split" // best fit decreasing; longer items are split first
)

// OnBadRecord is what happens at a record that cannot be used.
type OnBadRecord string

// The values of OnBadRecord.
const (
	OnBadRecordFail OnBadRecord = "fail" // the build ends with it
	OnBadRecordSkip OnBadRecord = "skip" // it is left out, counted and listed
)

// options returns what package ingest takes.
func (o *BuildOptions) options() option.Options {
	return option.Options{
		Settings: option.Settings{
			Sources: o.Sources, Tokenizer: o.Tokenizer, TokenizerPattern: o.TokenizerPattern,
			Format: source.Format(o.Format), TextField: o.TextField, Records: o.Records, Columns: o.Columns,
			Delimiter: o.Delimiter, Include: o.Include, Exclude: o.Exclude, Map: o.Map, Template: o.Template,
			Prompt: o.Prompt, Target: o.Target, CausalPairs: o.CausalPairs, ChatTemplate: o.ChatTemplate,
			TrainOn: chat.TrainOn(o.TrainOn), Reasoning: chat.Reasoning(o.Reasoning), SplitTurns: o.SplitTurns,
			Roles: o.Roles, Date: o.Date, EOS: option.Token(o.EOS), BOS: option.Token(o.BOS),
			SpecialTokens: option.SpecialTokens(o.SpecialTokens), Dedup: filter.Dedup(o.Dedup),
			MaxExamples: o.MaxExamples, MaxValExamples: o.MaxValExamples, ValSources: o.ValSources,
			MaxBytes: o.MaxBytes, MaxTokens: o.MaxTokens, MaxLength: o.MaxLength,
			Overflow: example.Overflow(o.Overflow), Pack: pack.Policy(o.Pack), ShardBytes: o.ShardBytes,
			OnBadRecord: option.OnBadRecord(o.OnBadRecord),
			Filter: option.Filter{
				Where: o.Where, Match: o.Match, NoMatch: o.NoMatch, MinChars: o.MinChars, MaxChars: o.MaxChars,
				Sample: o.Sample,
			},
		},
		Out: o.Out, Overwrite: o.Overwrite, Append: o.Append,
		Resources: option.Resources{
			Memory: o.Memory, Workers: o.Workers, CheckpointEvery: o.CheckpointEvery, ExtraBytes: o.ExtraBytes,
			Stdin: o.Stdin,
		},
		Hooks: o.hooks(),
	}
}
