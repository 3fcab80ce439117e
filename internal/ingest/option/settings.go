package option

import (
	"encoding/json"
	"strconv"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
)

// Settings are the options on which the bytes of a dataset depend, besides the content of its sources. The
// zero value of a field is its default. A plan keeps them as given; the manifest and every checkpoint have
// them as a build resolved them, and a build is resumed only under equal ones.
//
// Package loader has the comments of these fields, with the defaults and limits of the table.
type Settings struct {
	// Sources are paths, globs, folders, addresses (https://, s3://, gs://, hf://datasets/…, synth://), or
	// "-" for Stdin, read in this order. Default: the generated text synth://wikitext?seed=1, which has no
	// end.
	Sources []string `json:"sources"`
	// ValSources, if set, are the sources of the split "val", in place of examples held out.
	ValSources []string `json:"val,omitempty"`
	// Include lists globs, by name or by path from the folder: of folders and globs among the sources
	// only the files that one of them matches are read. Default: all that hold text.
	Include []string `json:"include,omitempty"`
	// Exclude lists globs of files and folders that are left out.
	Exclude []string `json:"exclude,omitempty"`
	// Tokenizer is a built-in name, a folder, a tokenizer.json, .tiktoken or .model file, or
	// hf://OWNER/NAME.
	Tokenizer string `json:"tokenizer"`
	// TokenizerPattern is how a .tiktoken file splits text: gpt2, cl100k, o200k, llama3, qwen2, kimi or a
	// regular expression. Default: what its number of ranks says.
	TokenizerPattern string `json:"tokenizer-pattern,omitempty"`
	// TokenizerFingerprint is that of Tokenizer. A build finds it.
	TokenizerFingerprint string `json:"tokenizer-fingerprint,omitempty"`
	// Format is that of the sources.
	Format source.Format `json:"format"`
	// TextField is the field of a record that holds the text: a.b[0] reaches inside, a|b is the first that
	// the record has, and several, separated by commas, are joined by a blank line. Default "text".
	TextField string `json:"text-field,omitempty"`
	// Records is where the records of JSON files lie: the elements of the array at this path, such as data or
	// a.b; "." is the top. Default: found where there is one array of objects.
	Records string `json:"records,omitempty"`
	// Columns are the names of the columns of CSV without a header. Default: its first line.
	Columns []string `json:"columns,omitempty"`
	// Delimiter separates the fields of CSV: one ASCII character, or "\t" written as two.
	// Default: the comma, semicolon, tab or bar that is most frequent in the first line.
	Delimiter string `json:"delimiter,omitempty"`
	// Map is a shell command through which all records go: it answers each line of its standard input, a JSON
	// object, with one, and what it answers is the record; null leaves it out. Default: none.
	Map string `json:"map,omitempty"`
	// Template makes the text of a record: a Jinja template, as text or in a file, or the name of a built-in one. With
	// the blocks prompt and target it makes both. Default: the text is in TextField.
	Template string `json:"template,omitempty"`
	// Prompt makes the prompt of a pair, in place of Template: a Jinja template, as text or in a file. It needs Target.
	Prompt string `json:"prompt,omitempty"`
	// Target makes the target of a pair, as Prompt makes the prompt.
	Target string `json:"target,omitempty"`
	// CausalPairs puts prompt and target into one row, with a loss mask that is true for the
	// target: for decoder-only models. It needs prompts and targets.
	CausalPairs bool `json:"causal-pairs,omitempty"`
	// ChatTemplate is a file with a Jinja template for conversations, or the name of a built-in one or of
	// one of the tokenizer's. Default: the tokenizer's own.
	ChatTemplate string `json:"chat-template,omitempty"`
	// ToolTemplate is the tokenizer's template for conversations with tools. A build finds it.
	ToolTemplate string `json:"chat-tool-template,omitempty"`
	// TrainOn is whose turns of a conversation carry loss.
	TrainOn chat.TrainOn `json:"train-on,omitempty"`
	// Reasoning is what becomes of a model's reasoning.
	Reasoning chat.Reasoning `json:"reasoning,omitempty"`
	// SplitTurns makes a row of each turn of the assistant, with what comes before it.
	SplitTurns bool `json:"split-turns,omitempty"`
	// Roles are pairs such as "customer=user": a role of messages, and the one that it means.
	Roles []string `json:"roles,omitempty"`
	// Date, as 2006-01-02, is what a chat template prints as today's. Default: none, and a
	// template that asks for it is refused.
	Date string `json:"date,omitempty"`
	// Filter selects the documents that stay, by their fields, text and length.
	Filter
	// Dedup selects which copies of earlier documents are left out.
	Dedup filter.Dedup `json:"dedup,omitempty"`
	// EOS is the token that follows each document: an id, a token as the vocabulary writes it, OwnToken for
	// the tokenizer's own, or NoToken. Default: none, but packed documents end with the tokenizer's own if it
	// has one. Where its post-processor adds the same token it is not added again.
	EOS Token `json:"eos,omitempty"`
	// BOS is the token that precedes each document, as EOS takes it. Default: none.
	BOS Token `json:"bos,omitempty"`
	// SpecialTokens is what the tokens of the tokenizer's post-processor go around.
	SpecialTokens SpecialTokens `json:"special-tokens,omitempty"`
	// MaxExamples is the limit of examples in the split "train"; 0 sets none.
	MaxExamples int64 `json:"max-examples"`
	// MaxValExamples is the number of examples held out for "val", or the limit of ValSources.
	MaxValExamples int64 `json:"max-val-examples"`
	// MaxBytes is the limit of text in bytes (UTF-8, after decoding and templates); 0 sets none.
	MaxBytes int64 `json:"max-bytes"`
	// MaxTokens is the limit of tokens over all splits, labels included; 0 sets none.
	MaxTokens int64 `json:"max-tokens"`
	// MaxLength is the longest example in tokens.
	MaxLength int `json:"max-length"`
	// Overflow is what happens to the rest of a longer document. With Pack it is left unset, because Pack
	// decides that.
	Overflow example.Overflow `json:"overflow"`
	// Pack fills rows to MaxLength with several documents.
	Pack pack.Policy `json:"pack,omitempty"`
	// PackWindow is how many tokens are packed together. Default: enough for hundreds of rows.
	PackWindow int64 `json:"pack-window,omitempty"`
	// ShardBytes is the size in bytes at which a shard is closed.
	ShardBytes int64 `json:"shard-bytes"`
	// OnBadRecord is what happens at a bad record. A build that failed at one may be resumed with "skip".
	OnBadRecord OnBadRecord `json:"on-bad-record"`
}

// Filter selects documents.
type Filter = filter.Options

// A Token is a token's id, the token as the vocabulary writes it, OwnToken or NoToken. In JSON an id is a
// number.
type Token string

// MarshalJSON implements json.Marshaler.
func (t Token) MarshalJSON() ([]byte, error) {
	if id, err := strconv.ParseUint(string(t), 10, 32); err == nil {
		return strconv.AppendUint(nil, id, 10), nil
	}
	return json.Marshal(string(t))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Token) UnmarshalJSON(data []byte) error {
	if _, err := strconv.ParseUint(string(data), 10, 32); err == nil {
		*t = Token(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// HasTemplate reports whether templates make the text of records.
func (s *Settings) HasTemplate() bool { return s.Template != "" || s.Prompt != "" || s.Target != "" }
