package option

import (
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/tokenize/builtin"
)

const (
	maxMaxLength = 1 << 24
	maxWorkers   = 1024
)

// patterns are the splits of .tiktoken files that tokenize knows by name.
var patterns = []string{"gpt2", "cl100k", "o200k", "llama3", "qwen2", "kimi"}

// table describes every field of Options that people set, in the order of help.
var table = []Row{
	{Name: "out", Short: "o", Group: GroupOutput, Value: "DIR", Files: true,
		Help:  "dataset folder, or s3://BUCKET/PATH, gs:// or az://",
		field: func(o *Options) any { return &o.Out }},

	{Name: "tokenizer", Short: "t", Group: GroupText, Value: "TOKENIZER", Words: builtin.Names(), Files: true,
		Help: "built-in name (gpt2, p50k, cl100k, o200k), folder, tokenizer.json, .tiktoken or .model, " +
			"or hf://OWNER/NAME",
		field: func(o *Options) any { return &o.Tokenizer }},
	{Name: "tokenizer-pattern", Group: GroupText, Value: "PATTERN", Words: patterns,
		Help: "how .tiktoken ranks split text: " +
			"gpt2, cl100k, o200k, llama3, qwen2, kimi or a regular expression (default: by their number)",
		field: func(o *Options) any { return &o.TokenizerPattern }},
	{Name: "format", Group: GroupSources, Kind: Word, Words: words(source.Formats()),
		Help:  alternatives(words(source.Formats())),
		field: func(o *Options) any { return (*string)(&o.Format) }},
	{Name: "text-field", Group: GroupText, Value: "FIELD",
		Help: "field that holds the text; a.b[0] reaches inside, a,b joins two with a blank line, and a|b is the first " +
			"that a record has (default text)",
		field: func(o *Options) any { return &o.TextField }},
	{Name: "records", Group: GroupSources, Value: "PATH",
		Help: "in JSON files, the records are the elements of the array at PATH, as in data or a.b; . is the top " +
			"(default found where there is one array of objects)",
		field: func(o *Options) any { return &o.Records }},
	{Name: "columns", Group: GroupSources, Kind: Names, Value: "FIELDS",
		Help:  "names of the columns of CSV without a header, as in id,text,lang",
		field: func(o *Options) any { return &o.Columns }},
	{Name: "delimiter", Group: GroupSources, Value: "CHARACTER",
		Help:  "separator of CSV fields (default the comma, semicolon, tab or | that is most frequent in the first line)",
		field: func(o *Options) any { return &o.Delimiter }},
	{Name: "include", Group: GroupSources, Kind: List, Value: "GLOB",
		Help: "in folders and globs, read only files that match this glob, by name or by path from the folder " +
			"(repeatable)",
		field: func(o *Options) any { return &o.Include }},
	{Name: "exclude", Group: GroupSources, Kind: List, Value: "GLOB",
		Help:  "in folders and globs, skip files and folders that match this glob (repeatable)",
		field: func(o *Options) any { return &o.Exclude }},
	{Name: "map", Group: GroupText, Value: "COMMAND",
		Help:  "send each record through this shell COMMAND, which answers each line of JSON with one line of JSON",
		field: func(o *Options) any { return &o.Map }},
	{Name: "template", Group: GroupText, Value: "TEMPLATE", Words: example.Builtins(), Files: true,
		Help: "Jinja template that makes the text of a record, as text ('{{ title }}: {{ text }}') or in a file, or a " +
			"built-in one (recipe, recipe-seq2seq)",
		field: func(o *Options) any { return &o.Template }},
	{Name: "prompt", Group: GroupText, Value: "TEMPLATE", Files: true,
		Help:  "Jinja template, as text or in a file, that makes the prompt of a pair; `target` makes the rest",
		field: func(o *Options) any { return &o.Prompt }},
	{Name: "target", Group: GroupText, Value: "TEMPLATE", Files: true,
		Help:  "Jinja template, as text or in a file, that makes the target of a pair",
		field: func(o *Options) any { return &o.Target }},
	{Name: "causal-pairs", Group: GroupText, Kind: Switch,
		Help:  "prompt and target in one row, with the loss on the target only, for decoder-only models",
		field: func(o *Options) any { return &o.CausalPairs }},
	{Name: "chat-template", Group: GroupText, Value: "TEMPLATE", Words: chat.Builtins, Files: true,
		Help: "Jinja file with a chat template, a built-in one (" + strings.Join(chat.Builtins, ", ") + "), or the " +
			"name of one of the tokenizer's (default the tokenizer's own)",
		field: func(o *Options) any { return &o.ChatTemplate }},
	{Name: "train-on", Group: GroupText, Kind: Word, Words: words(chat.TrainOns),
		Help:  "whose turns carry loss: assistant, last (its last turn) or all",
		field: func(o *Options) any { return (*string)(&o.TrainOn) }},
	{Name: "reasoning", Group: GroupText, Kind: Word, Words: words(chat.Reasonings),
		Help:  "a model's reasoning: keep, mask (no loss on it) or drop",
		field: func(o *Options) any { return (*string)(&o.Reasoning) }},
	{Name: "split-turns", Group: GroupText, Kind: Switch,
		Help:  "a row for each turn of the assistant, with what comes before it, and the loss on that turn only",
		field: func(o *Options) any { return &o.SplitTurns }},
	{Name: "roles", Group: GroupText, Kind: Names, Value: "ROLES",
		Help:  "what other roles mean, as in pupil=user,tutor=assistant",
		field: func(o *Options) any { return &o.Roles }},
	{Name: "date", Group: GroupText, Value: "DAY",
		Help:  "day that a chat template writes as today's, such as 2006-01-02",
		field: func(o *Options) any { return &o.Date }},
	{Name: "eos", Group: GroupText, Kind: Ending, Value: "TOKEN",
		Help: "special token after each document, by name or id; without a value, and with `pack`, " +
			"the tokenizer's own; off for none",
		field: func(o *Options) any { return (*string)(&o.EOS) }},
	{Name: "bos", Group: GroupText, Kind: Ending, Value: "TOKEN",
		Help:  "special token before each document, as `eos` takes it",
		field: func(o *Options) any { return (*string)(&o.BOS) }},
	{Name: "special-tokens", Group: GroupText, Kind: Word,
		Words: words([]SpecialTokens{SpecialOfDocument, SpecialOfChunk}),
		Help:  "where the post-processor adds its tokens: around each document, or chunk for each row",
		field: func(o *Options) any { return (*string)(&o.SpecialTokens) }},

	{Name: "where", Group: GroupFilters, Kind: List, Value: "CONDITION",
		Help: "keep records that meet CONDITION: FIELD=VALUE, or !=, >=, <=, > or <, as in a.b!=x or 'score>=3' (quote " +
			"> and <; repeatable: values of one field with = are alternatives, else all must hold)",
		field: func(o *Options) any { return &o.Where }},
	{Name: "match", Group: GroupFilters, Kind: List, Value: "RE",
		Help:  "keep documents in which this regular expression matches (RE2 syntax; repeatable: all must match)",
		field: func(o *Options) any { return &o.Match }},
	{Name: "no-match", Group: GroupFilters, Kind: List, Value: "RE",
		Help:  "drop documents in which this regular expression matches (repeatable: any)",
		field: func(o *Options) any { return &o.NoMatch }},
	{Name: "min-chars", Group: GroupFilters, Kind: Count,
		Help:  "drop documents with fewer characters",
		field: func(o *Options) any { return &o.MinChars }},
	{Name: "max-chars", Group: GroupFilters, Kind: Count,
		Help:  "drop documents with more characters, 0 for no limit",
		field: func(o *Options) any { return &o.MaxChars }},
	{Name: "sample", Group: GroupFilters, Kind: Share,
		Help:  "keep this share of the documents, chosen by content hash, such as 0.1",
		field: func(o *Options) any { return &o.Sample }},
	{Name: "dedup", Group: GroupFilters, Kind: Word, Words: words(filter.Dedups),
		Help:  "drop copies of earlier documents: none, exact, or near for nearly the same words",
		field: func(o *Options) any { return (*string)(&o.Dedup) }},

	{Name: "max-examples", Group: GroupSplits, Kind: Count,
		Help: fmt.Sprintf("stop after N training examples, 0 for no limit (default %d without a SOURCE, else 0)",
			DefaultMaxExamples),
		field: func(o *Options) any { return &o.MaxExamples }},
	{Name: "max-val-examples", Group: GroupSplits, Kind: Count,
		Help:  "hold out N examples for the split val, by content hash",
		field: func(o *Options) any { return &o.MaxValExamples }},
	{Name: "val", Group: GroupSplits, Kind: List, Value: "SOURCE", Files: true,
		Help:  "build the split val from this source instead of holding examples out",
		field: func(o *Options) any { return &o.ValSources }},
	{Name: "max-bytes", Group: GroupSplits, Kind: Size,
		Help:  "stop after SIZE of text, 0 for no limit",
		field: func(o *Options) any { return &o.MaxBytes }},
	{Name: "max-tokens", Group: GroupSplits, Kind: Count,
		Help:  "stop after N tokens, 0 for no limit",
		field: func(o *Options) any { return &o.MaxTokens }},
	{Name: "max-length", Group: GroupPacking, Kind: Count, Min: 1, Max: maxMaxLength,
		Help:  "longest example in tokens",
		field: func(o *Options) any { return &o.MaxLength }},
	{Name: "overflow", Group: GroupPacking, Kind: Word, Words: words(example.Overflows),
		Help:  "what happens to the rest of a longer document: chunk, truncate or drop",
		field: func(o *Options) any { return (*string)(&o.Overflow) }},
	{Name: "pack", Group: GroupPacking, Kind: Word, Words: words(pack.Policies), Aliases: pack.Aliases(),
		Help: "fill rows to `max-length`: wrapped (cut anywhere), bfd (whole documents, best fit decreasing), " +
			"bfd_split or none",
		field: func(o *Options) any { return (*string)(&o.Pack) }},
	{Name: "shard-bytes", Group: GroupOutput, Kind: Size, Min: 4 << 10, Max: 64 << 30, // the limits of package shard
		Help:  "target size of a shard",
		field: func(o *Options) any { return &o.ShardBytes }},
	{Name: "memory", Group: GroupLimits, Kind: Size, Min: 1,
		Help:  "hard cap on the whole process",
		field: func(o *Options) any { return &o.Memory }},
	{Name: "workers", Group: GroupLimits, Kind: Count, Min: 1, Max: maxWorkers,
		Help:  "tokenizing workers, and cores that a build takes (default the CPU quota)",
		field: func(o *Options) any { return &o.Workers }},
	{Name: "checkpoint-every", Group: GroupLimits, Kind: Count, Min: 1,
		Help:  "after a kill, repeat at most N examples or a second's work",
		field: func(o *Options) any { return &o.CheckpointEvery }},
	{Name: "on-bad-record", Group: GroupSources, Kind: Word, Words: words(BadRecordPolicies),
		Help:  "fail, or skip and list them by file and reason in rejects.jsonl",
		field: func(o *Options) any { return (*string)(&o.OnBadRecord) }},

	{Name: "overwrite", Group: GroupOutput, Kind: Switch,
		Help:  "start afresh in a folder that holds another build",
		field: func(o *Options) any { return &o.Overwrite }},
	{Name: "append", Group: GroupOutput, Kind: Switch,
		Help:  "add the SOURCEs to the finished dataset in `out`, as new shards with the same settings",
		field: func(o *Options) any { return &o.Append }},
}
