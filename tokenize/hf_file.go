package tokenize

import (
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/general"
	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
)

// hfFile is a tokenizer.json, its small components as trees.
type hfFile struct {
	added                                   []hfAdded
	normalizer, preTokenizer, post, decoder jsonx.Value
	model                                   *hfModel
	warnings                                []string
}

func readHF(data []byte) (*hfFile, error) {
	s, err := jsonx.NewScanner(data)
	if err != nil {
		return nil, err
	}
	null := jsonx.Value{Kind: 'n'}
	f := &hfFile{normalizer: null, preTokenizer: null, post: null, decoder: null}
	tree := func(to *jsonx.Value) (err error) {
		*to, err = s.Value(maxNodes)
		return err
	}
	err = s.Object(func(key []byte) (err error) {
		switch k := string(key); k {
		case "version":
			var v []byte
			if v, err = s.String(); err == nil && string(v) != "1.0" {
				err = unsupportedf("tokenizer.json version %q", v)
			}
		case "truncation", "padding":
			if !s.Null() {
				f.warnings = append(f.warnings, k+" block ignored: lengths are set by the caller")
				err = s.Skip()
			}
		case "added_tokens":
			f.added, err = readAdded(s)
		case "normalizer":
			err = tree(&f.normalizer)
		case "pre_tokenizer":
			err = tree(&f.preTokenizer)
		case "post_processor":
			err = tree(&f.post)
		case "decoder":
			err = tree(&f.decoder)
		case "model":
			f.model, err = readModel(s)
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
	if f.model == nil {
		return nil, formatf("no model")
	}
	return f, nil
}

// parseHF makes a tokenizer of a tokenizer.json.
func parseHF(data []byte) (*Tokenizer, error) {
	sum := aside(func() string { return fingerprint("tokenizer.json", data) })
	t, err := buildHF(data)
	if s := sum(); err == nil {
		t.fingerprint = s
	}
	return t, err
}

// buildHF is parseHF without the fingerprint.
func buildHF(data []byte) (*Tokenizer, error) {
	f, err := readHF(data)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{name: "tokenizer.json", warnings: f.warnings, tokens: newTokenSet(f.model.table), special: noSpecial()}
	var bad error
	var normNames, preNames, postNames, decNames []string
	norm := normalizers(f.normalizer, &normNames, &bad)
	pre := preTokenizers(f.preTokenizer, &preNames, &bad)
	around := postProcessors(f.post, &postNames, &bad)
	dec := decoders(f.decoder, &decNames, &bad)
	if bad != nil {
		return nil, bad
	}
	t.prefix, t.suffix = around.prefix, around.suffix
	t.decode = t.tokens.decoder(dec, !f.decoder.IsNull())
	t.components = Components{joinNames(normNames), joinNames(preNames), f.model.kind, joinNames(postNames), joinNames(decNames)}
	raw, normalized := t.addTokens(f.added, f.model, norm)
	if err := t.checkUnknown(f.model); err != nil {
		return nil, err
	}
	if t.engine, t.family, err = buildPipeline(f, norm, pre, raw, normalized); err != nil {
		return nil, err
	}
	t.findSpecial(f.model, around)
	for _, id := range append(append([]uint32{}, t.prefix...), t.suffix...) {
		if _, ok := t.Token(id); !ok {
			return nil, formatf("post-processor adds id %d, which no token has", id)
		}
	}
	return t, nil
}

// checkUnknown refuses models that fail on text with unknown words, and warns of those that drop unknown characters.
func (t *Tokenizer) checkUnknown(m *hfModel) error {
	if m.hasUnk {
		if _, ok := m.table.ID([]byte(m.unkToken)); ok {
			return nil
		}
		if m.kind != "BPE" {
			return formatf("unk_token %q is not in the vocabulary of the %s model", m.unkToken, m.kind)
		}
		t.warnings = append(t.warnings, fmt.Sprintf("unk_token %q is not in the vocabulary: unknown characters are dropped", m.unkToken))
	}
	if m.kind == "Unigram" && m.unkID < 0 {
		t.warnings = append(t.warnings, "no unk_id: unknown text is dropped")
	}
	return nil
}

// buildPipeline chooses the engine.
func buildPipeline(f *hfFile, norm normalize.Sequence, pre pretokenize.Sequence, raw, normalized []added.Token) (engine, string, error) {
	var c general.Config
	var err error
	if c.Added, err = added.New(raw); err != nil {
		return nil, "", err
	}
	if c.AddedNormalized, err = added.New(normalized); err != nil {
		return nil, "", err
	}
	shape := shapeOf(f)
	c.CutAtSpaces = shape.cutsAtSpaces(normalized)
	if name, ok := fastEngine(f, &shape, norm, &c); ok {
		return pipeline{general.New(c), name}, shape.family, nil
	}
	c.Normalizer, c.PreTokenizer = norm, pre
	if c.Model, err = generalModel(f.model); err != nil {
		return nil, "", err
	}
	return pipeline{general.New(c), "general"}, shape.family, nil
}
