// Package hf reads a Hugging Face tokenizer.json into a spec.Spec.
package hf

import (
	"fmt"
	"math"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// file is a tokenizer.json, with its small components as trees.
type file struct {
	added                                   []spec.AddedToken
	normalizer, preTokenizer, post, decoder jsonx.Value
	model                                   *model
	warnings                                []string
	truncation                              int

	listFrom, listTo int  // where the list of added tokens lies; 0, 0 for none
	completed        bool // added has more than the list
}

func readFile(data []byte, mem *spec.Meter) (*file, error) {
	s, err := jsonx.NewScanner(data)
	if err != nil {
		return nil, err
	}
	null := jsonx.Value{Kind: 'n'}
	f := &file{normalizer: null, preTokenizer: null, post: null, decoder: null}
	trees := map[string]*jsonx.Value{
		"normalizer": &f.normalizer, "pre_tokenizer": &f.preTokenizer, "post_processor": &f.post, "decoder": &f.decoder,
	}
	seen := map[string]bool{}
	err = s.Object(func(key []byte) (err error) {
		k := string(key)
		seen[k] = true
		if tree := trees[k]; tree != nil {
			*tree, err = readComponent(s, mem, k)
			return err
		}
		switch k {
		case "version":
			var v []byte
			if v, err = s.String(); err == nil && string(v) != "1.0" {
				err = spec.Unsupportedf("tokenizer.json version %q", v)
			}
		case "truncation":
			if !s.Null() {
				err = f.readTruncation(s)
			}
		case "padding": // the caller pads
			err = s.Skip()
		case "added_tokens":
			s.Peek()
			f.listFrom = s.Offset()
			f.added, err = readAdded(s, mem)
			f.listTo = s.Offset()
		case "model":
			f.model, err = readModel(s, mem)
		default:
			f.warnings = append(f.warnings, fmt.Sprintf("unknown field %q ignored", k))
			err = s.Skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.End(); err != nil {
		return nil, err
	}
	if f.model == nil && seen["config"] && seen["vocab"] {
		return nil, spec.NoTekken()
	}
	if f.model == nil {
		return nil, spec.Formatf("it has no model, as vocab.json and config.json have none; a tokenizer.json has one")
	}
	return f, nil
}

// readTruncation reads the length to which the file cuts. What does not say one is ignored, as the whole
// block is: the caller decides about lengths.
func (f *file) readTruncation(s *jsonx.Scanner) error {
	if s.Peek() != '{' {
		return s.Skip()
	}
	return s.Object(func(key []byte) error {
		if string(key) == "max_length" && s.Peek() >= '0' && s.Peek() <= '9' {
			at := s.Offset()
			n, err := s.Uint(math.MaxInt32)
			if err == nil {
				f.truncation = int(n)
				return nil
			}
			s.Seek(at)
		}
		return s.Skip()
	})
}

// builder turns a file into a Spec.
type builder struct {
	*file
	spec    *spec.Spec
	mem     *spec.Meter
	scratch normalize.Scratch
}

func (b *builder) warn(format string, args ...any) {
	b.spec.Warnings = append(b.spec.Warnings, fmt.Sprintf(format, args...))
}

// Read reads a tokenizer.json, and adds what the files beside it say; where that changes anything, Spec.Patch makes it
// part of the file. The Spec has no fingerprint. Errors wrap those of package spec, or are *jsonx.Error with a byte
// offset.
func Read(data []byte, o *spec.Outside, mem *spec.Meter) (*spec.Spec, error) {
	f, err := readFile(data, mem)
	if err != nil {
		return nil, err
	}
	if err := f.complete(o, mem); err != nil {
		return nil, err
	}
	s := &spec.Spec{Name: "tokenizer.json", FileName: "tokenizer.json", Warnings: f.warnings,
		Truncation: f.truncation}
	b := &builder{file: f, spec: s, mem: mem}
	r := &reading{mem: mem}
	var norm, pre, post, dec []string
	s.Normalizer = unroll(f.normalizer, "normalizer", "normalizers", &norm, r, component.normalizer)
	s.PreTokenizer = unroll(f.preTokenizer, "pre_tokenizer", "pretokenizers", &pre, r, component.preTokenizer)
	s.Around = postProcessors(f.post, &post, r)
	steps := unroll(f.decoder, "decoder", "decoders", &dec, r, component.decoder)
	s.Decoder = spec.Steps{Sequence: steps, Any: !f.decoder.IsNull()}
	if r.err != nil {
		return nil, r.err
	}
	s.Warnings = append(s.Warnings, r.ignored...)
	s.Names = spec.Names{
		Normalizer: strings.Join(norm, ", "), PreTokenizer: strings.Join(pre, ", "), Model: f.model.kind,
		PostProcessor: strings.Join(post, ", "), Decoder: strings.Join(dec, ", "),
	}
	if err := b.addTokens(); err != nil {
		return nil, err
	}
	if s.Patch, err = f.patch(data); err != nil {
		return nil, err
	}
	unk, err := b.unknown()
	if err != nil {
		return nil, err
	}
	s.Model = f.model.spec(unk)
	s.Warnings = append(s.Warnings, f.model.ignored...)
	return s, b.checkAround()
}

// unknown returns the id of unknown words or characters. It refuses models that fail on text with
// unknown words, and warns of those that drop unknown characters. Hugging Face's library looks for
// the token only in the model's vocabulary, and fails at the first unknown word if it is only an
// added token; here that token's id is taken.
func (b *builder) unknown() (int64, error) {
	m := b.model
	if !m.hasUnk {
		if m.kind == "Unigram" && m.unkID < 0 {
			b.warn("no unk_id: unknown text is dropped")
		}
		return -1, nil
	}
	if id, ok := m.table.ID([]byte(m.unkToken)); ok {
		return int64(id), nil
	}
	if m.kind == "BPE" {
		b.warn("unk_token %q is not in the vocabulary: unknown characters are dropped", m.unkToken)
		return -1, nil
	}
	for _, a := range b.spec.Added {
		if a.Content == m.unkToken {
			b.warn("unk_token %q is only an added token: unknown words become its id %d, "+
				"where Hugging Face's library stops", m.unkToken, a.ID)
			return int64(a.ID), nil
		}
	}
	return -1, spec.Formatf("unk_token %q is not in the vocabulary of the %s model", m.unkToken, m.kind)
}

// checkAround refuses a post-processor that adds an id without a token.
func (b *builder) checkAround() error {
	for _, ids := range [][]uint32{b.spec.Around.Prefix, b.spec.Around.Suffix} {
		for _, id := range ids {
			_, ok := b.model.table.Token(id)
			for _, a := range b.spec.Added {
				ok = ok || a.ID == id
			}
			if !ok {
				return spec.Formatf("post-processor adds id %d, which no token has", id)
			}
		}
	}
	return nil
}
