package build

import (
	"encoding/json"
	"slices"

	"github.com/dsload/dsload/loader/build/example"
	"github.com/dsload/dsload/loader/build/example/chat"
	"github.com/dsload/dsload/loader/build/shape"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/loader/pack"
)

// settings are the options on which the bytes of a dataset depend, besides the content of its
// sources. They are written to the manifest and to every checkpoint, and a build is resumed only
// under equal ones.
type settings struct {
	Sources        []string         `json:"sources"`
	ValSources     []string         `json:"val,omitempty"`
	Include        []string         `json:"include,omitempty"`
	Exclude        []string         `json:"exclude,omitempty"`
	Tokenizer      string           `json:"tokenizer"`
	Pattern        string           `json:"tokenizer-pattern,omitempty"`
	Fingerprint    string           `json:"tokenizer-fingerprint"`
	Format         source.Format    `json:"format"`
	TextField      string           `json:"text-field,omitempty"`
	Columns        []string         `json:"columns,omitempty"`
	Delimiter      string           `json:"delimiter,omitempty"`
	Template       string           `json:"template,omitempty"`
	CausalPairs    bool             `json:"causal-pairs,omitempty"`
	ChatTemplate   string           `json:"chat-template,omitempty"` // its text
	ToolTemplate   string           `json:"chat-tool-template,omitempty"`
	TrainOn        chat.TrainOn     `json:"train-on,omitempty"` // unset for "assistant"
	Date           string           `json:"date,omitempty"`
	Where          []string         `json:"where,omitempty"`
	Match          []string         `json:"match,omitempty"`
	NoMatch        []string         `json:"no-match,omitempty"`
	MinChars       int64            `json:"min-chars,omitempty"`
	MaxChars       int64            `json:"max-chars,omitempty"`
	Sample         float64          `json:"sample,omitempty"`
	Dedup          shape.Dedup      `json:"dedup,omitempty"` // unset for "none"
	EOS            *uint32          `json:"eos,omitempty"`
	BOS            *uint32          `json:"bos,omitempty"`
	SpecialTokens  SpecialTokens    `json:"special-tokens,omitempty"` // unset for "document"
	MaxExamples    int64            `json:"max-examples"`
	MaxValExamples int64            `json:"max-val-examples"`
	MaxBytes       int64            `json:"max-bytes"`
	MaxTokens      int64            `json:"max-tokens"`
	MaxLength      int              `json:"max-length"`
	Overflow       example.Overflow `json:"overflow"`
	Pack           pack.Policy      `json:"pack,omitempty"` // unset for "none"
	ShardBytes     int64            `json:"shard-bytes"`
	OnBadRecord    OnBadRecord      `json:"on-bad-record"`
}

func (b *build) settings() (json.RawMessage, error) {
	o := &b.opts
	s := settings{
		Sources: redacted(o.Sources), ValSources: redacted(o.ValSources), Include: o.Include, Exclude: o.Exclude,
		Tokenizer: o.Tokenizer, Pattern: o.TokenizerPattern, Fingerprint: b.tokenizer.Fingerprint(),
		Format: o.Format, TextField: o.TextField, Columns: o.Columns, Delimiter: o.Delimiter, Template: b.template,
		CausalPairs: o.CausalPairs, EOS: b.ends.eos,
		BOS:         b.ends.bos,
		MaxExamples: o.MaxExamples, MaxValExamples: o.MaxValExamples, MaxBytes: o.MaxBytes, MaxTokens: o.MaxTokens,
		MaxLength: o.MaxLength, Overflow: o.Overflow, ShardBytes: o.ShardBytes, OnBadRecord: o.OnBadRecord,
	}
	setShaping(&s, o)
	if o.SpecialTokens != SpecialOfDocument {
		s.SpecialTokens = o.SpecialTokens
	}
	if o.Pack != pack.None {
		s.Pack, s.Overflow = o.Pack, example.Chunk // the policy decides, and is named where it differs
	}
	b.chat.settings(&s)
	return json.Marshal(s)
}

// redacted returns sources without the credentials of their addresses, which may differ from run to
// run.
func redacted(sources []string) []string {
	if !slices.ContainsFunc(sources, source.IsRemote) {
		return sources
	}
	out := make([]string, len(sources))
	for i, s := range sources {
		out[i] = source.Redact(s)
	}
	return out
}

// mayChange reports whether an unfinished build may go on under another value of a setting: records
// that were read were good, or it would have failed.
func mayChange(name, have, want string) bool {
	return name == "on-bad-record" && have == `"fail"` && want == `"skip"`
}
