package tokenize

import (
	"crypto/sha256"
	"fmt"
	"io/fs"

	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Details answers what programs built on tokenizers ask: what a tokenizer is made of, how much
// memory it takes, and which file it came from.
type Details struct{ t *Tokenizer }

// Details returns the tokenizer's details.
func (t *Tokenizer) Details() Details { return Details{t} }

// source is where a tokenizer came from.
type source struct {
	fsys fs.FS // nil if there is no file
	name string
	sum  [sha256.Size]byte // a .tiktoken file's
	data []byte            // the file itself where it was given in memory

	patch  *spec.Patch // makes tokens of other files part of a tokenizer.json
	config []byte      // has those of other formats

	options Options    // it was read with
	spec    *spec.Spec // only where it was read from ranks
}

// File returns the file that the tokenizer was read from, so that it can be kept next to its
// output, and the name under which Load finds it in a folder: tokenizer.json, tokenizer.tiktoken or
// tokenizer.model. Tokens that other files add are in a tokenizer.json; for the other formats, they
// are in Config. data is nil if there is no file or where it has changed since.
func (d Details) File() (name string, data []byte) {
	if s := &d.t.source; s.data == nil && s.fsys == nil {
		return "", nil
	}
	data, err := d.t.readFile()
	if err != nil {
		return "", nil
	}
	return d.t.fileName, data
}

// Config returns the tokenizer_config.json to keep next to File, and that name; nil where there is no need for
// one.
func (d Details) Config() (name string, data []byte) { return configName, d.t.source.config }

// Named returns the token that the files beside the tokenizer name for a role such as eos_token, "" if they say that
// there is none. said is false if they do not say.
func (d Details) Named(role string) (token string, said bool) {
	token, said = d.t.named[role]
	return token, said
}

// IsReserved reports whether a token stands for something other than a part of texts, such as the end of a document: it
// was added to the vocabulary, is a control piece, or comes from the post-processor.
func (d Details) IsReserved(id uint32) bool { return d.t.reserved(id, false) }

// readFile returns the file that the tokenizer was read from. The error wraps ErrFormat if it has changed since.
func (t *Tokenizer) readFile() ([]byte, error) {
	s := &t.source
	if s.data != nil {
		return s.patch.Apply(s.data), nil
	}
	b, err := readRegular(s.fsys, s.name, maxFileBytes)
	b = s.patch.Apply(b)
	if err == nil && !t.isFile(b) {
		err = fmt.Errorf("%w: the file has changed since it was loaded", ErrFormat)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// isFile reports whether b is the file that the tokenizer was read from.
func (t *Tokenizer) isFile(b []byte) bool {
	if t.fileName == jsonName {
		return spec.Fingerprint(jsonName, b) == t.fingerprint
	}
	return sha256.Sum256(b) == t.source.sum
}

// ResidentBytes estimates the memory of the tokenizer's tables in bytes, without encoders.
func (d Details) ResidentBytes() int64 { return d.t.pipeline.ResidentBytes() + d.t.tokens.bytes() }

// EncoderBytes returns the maximum number of bytes that an Encoder with these options holds between calls.
func (d Details) EncoderBytes(o EncoderOptions) int64 {
	o = o.withDefaults()
	return d.t.pipeline.EncoderBytes(o.CacheBytes, o.MaxNormalized)
}

// Truncation returns the number of tokens to which the tokenizer's file cuts texts, 0 for none. It has no effect:
// the caller decides about lengths.
func (d Details) Truncation() int { return d.t.truncation }

// Components names what a tokenizer is made of, in the words of its file. An absent component is
// "".
type Components struct {
	Normalizer    string `json:"normalizer,omitempty"`
	PreTokenizer  string `json:"pre_tokenizer,omitempty"`
	Model         string `json:"model"`
	PostProcessor string `json:"post_processor,omitempty"`
	Decoder       string `json:"decoder,omitempty"`
}

// Description is what `tokenizer inspect` shows.
type Description struct {
	Name          string     `json:"name"`
	Family        string     `json:"family"`
	Engine        string     `json:"engine"`
	VocabSize     int        `json:"vocab_size"`
	AddedTokens   int        `json:"added_tokens"`
	Components    Components `json:"components"`
	Special       Special    `json:"special"`
	Prefix        []uint32   `json:"prefix"`
	Suffix        []uint32   `json:"suffix"`
	Fingerprint   string     `json:"fingerprint"`
	ResidentBytes int64      `json:"resident_bytes"`
	EncoderBytes  int64      `json:"encoder_bytes"`
	Truncation    int        `json:"truncation,omitempty"` // Details.Truncation
	Warnings      []string   `json:"warnings,omitempty"`
}

// Describe returns a summary of the tokenizer.
func (d Details) Describe() Description {
	t := d.t
	return Description{
		Name: t.name, Family: t.family, Engine: t.pipeline.Kind, VocabSize: t.VocabSize(),
		AddedTokens: len(t.tokens.added),
		Components:  Components(t.names), Special: t.special, Prefix: t.Prefix(), Suffix: t.Suffix(),
		Fingerprint:   t.fingerprint,
		ResidentBytes: d.ResidentBytes(), EncoderBytes: d.EncoderBytes(EncoderOptions{}), Warnings: t.warnings,
		Truncation: t.truncation,
	}
}
