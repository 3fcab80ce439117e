package pipeline

import (
	"bytes"

	"github.com/dsload/dsload/tokenize/internal/engine/plain"
	"github.com/dsload/dsload/tokenize/internal/engine/spbpe"
	"github.com/dsload/dsload/tokenize/internal/engine/unigram"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/spmodel"
)

// The engines for models that represent spaces as U+2581: SentencePiece's, and those in a
// tokenizer.json that follow it.

// metaspace reads Metaspace with the usual character.
func metaspace(c pretokenize.Component) (m pretokenize.Metaspace, prefix spbpe.Prefix, ok bool) {
	m, ok = c.(pretokenize.Metaspace)
	if !ok || m.Replacement != spec.MetaspaceChar {
		return m, 0, false
	}
	if m.Prepend == pretokenize.PrependNever {
		return m, spbpe.PrefixNever, true
	}
	return m, spbpe.PrefixUnlessSpace, true
}

// spacedBPE replaces Prepend and Replace, or Metaspace.
func (c *Config) spacedBPE(m *spec.BPE, s *spec.Spec) bool {
	if m.Prefix != "" || m.Suffix != "" || m.IgnoreMerges {
		return false
	}
	cfg := spbpe.Config{Pieces: m.Vocab.Tokens(), ByteFallback: m.ByteFallback, ByteIDs: m.Vocab.ByteIDs(),
		UnkID: int(m.Unk), FuseUnk: m.FuseUnk}
	before := len(s.Normalizer) // normalizers that run before the engine
	if n := before; n > 0 && spec.ReplacesSpaces(s.Normalizer[n-1]) {
		if !cutsNothing(s.PreTokenizer) {
			return false
		}
		if c.AddedNormalized == nil {
			before--
			if p, ok := last(s.Normalizer[:before]).(normalize.Prepend); ok && p.Text == spec.Metaspace {
				cfg.Prefix = spbpe.PrefixAlways
				before--
			}
		}
	} else {
		if len(s.PreTokenizer) != 1 {
			return false
		}
		p, prefix, ok := metaspace(s.PreTokenizer[0])
		if !ok {
			return false
		}
		cfg.Prefix, cfg.SplitSpaces, c.FirstOnly = prefix, p.Split, p.Prepend == pretokenize.PrependFirst
	}
	cfg.Merges = make([][2]uint32, len(m.Merges))
	for i, g := range m.Merges {
		cfg.Merges[i] = [2]uint32{g.Left, g.Right}
	}
	model, err := spbpe.New(cfg)
	if err != nil {
		return false
	}
	c.Segments, c.Kind, c.Normalizer = segments(model), "SentencePiece-style BPE",
		normalize.Unroll(s.Normalizer[:before])
	return true
}

// last returns the last normalizer of a list, nil if it is empty.
func last(list []normalize.Component) normalize.Component {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// cutsNothing reports whether a pre-tokenizer never cuts text without spaces: it is absent or a
// Split at a space.
func cutsNothing(list []pretokenize.Component) bool {
	if len(list) != 1 {
		return len(list) == 0
	}
	split, ok := list[0].(pretokenize.Split)
	return ok && !split.Pattern.IsRegex && split.Pattern.Text == " " && !split.Invert
}

// unigram replaces Metaspace, or WhitespaceSplit and Metaspace, and the normalizers right before
// them that it knows.
func (c *Config) unigram(m *spec.Unigram, s *spec.Spec) bool {
	if m.Unk < 0 || len(s.PreTokenizer) == 0 || len(s.PreTokenizer) > 2 {
		return false
	}
	cfg := unigram.Config{Pieces: m.Vocab.Tokens(), Scores: m.Scores, UnkID: m.Unk, ByteFallback: m.ByteFallback,
		ByteIDs: m.Vocab.ByteIDs()}
	p, prefix, ok := metaspace(s.PreTokenizer[len(s.PreTokenizer)-1])
	if !ok || !p.Split {
		return false
	}
	firstOnly := p.Prepend == pretokenize.PrependFirst
	if len(s.PreTokenizer) == 2 {
		if _, ok := s.PreTokenizer[0].(pretokenize.WhitespaceSplit); !ok || p.Prepend != pretokenize.PrependAlways {
			return false
		}
		cfg.Split = unigram.SplitWords
	} else {
		cfg.Split, cfg.Prefix, cfg.PrefixFirst = unigram.SplitMetaspace, prefix != spbpe.PrefixNever, firstOnly
	}
	before := s.Normalizer
	if c.AddedNormalized == nil && !firstOnly {
		if before, ok = absorb(&cfg, before); !ok {
			return false
		}
	}
	model, err := unigram.New(cfg)
	if err != nil {
		return false
	}
	c.Segments, c.Kind, c.Normalizer, c.FirstOnly = segments(model), "Unigram", normalize.Unroll(before), firstOnly
	return true
}

// absorb moves to the engine's configuration the last normalizers that it computes itself, and
// returns the others. ok is false if the engine cannot take their output.
func absorb(cfg *unigram.Config, list []normalize.Component) (before []normalize.Component, ok bool) {
	if r, is := last(list).(normalize.Replace); is && r.Pattern.IsRegex && r.Pattern.Text == " {2,}" {
		if r.Content != " " && (r.Content != spec.Metaspace || cfg.Split == unigram.SplitWords) {
			return nil, false
		}
		cfg.CollapseSpaces, list = true, list[:len(list)-1]
	}
	if r, is := last(list).(normalize.Strip); is && !r.Left && r.Right {
		cfg.StripRight, list = true, list[:len(list)-1]
	}
	if r, is := last(list).(normalize.Precompiled); is {
		cfg.Charsmap, list = r.Map, list[:len(list)-1]
	}
	if _, is := last(list).(normalize.Nmt); is {
		cfg.Nmt, list = true, list[:len(list)-1]
	}
	return list, true
}

// sentencePiece also replaces the normalizer if the engine does all that it does.
func (c *Config) sentencePiece(m *spec.SentencePiece, s *spec.Spec) bool {
	norm, ok := s.Normalizer[0].(*spmodel.Normalizer)
	if !ok {
		return false
	}
	if m.Unigram {
		return c.sentenceUnigram(m, norm)
	}
	c.FirstOnly = norm.Once
	cfg := spbpe.Config{
		Pieces: m.Vocab.Tokens(), Scores: m.Scores, NoMerge: make([]bool, len(m.Kinds)), ByteFallback: m.ByteFallback,
		ByteIDs: m.ByteIDs, UnkID: m.Unk,
		FuseUnk: true,
	}
	for id, kind := range m.Kinds {
		switch kind {
		case spec.Unused:
			return false
		case spec.UserDefined:
			cfg.UserDefined = append(cfg.UserDefined, uint32(id))
		case spec.Normal:
		default:
			cfg.NoMerge[id] = true
		}
	}
	c.CutAtSpaces = false
	if !norm.Trivial() {
		c.Normalizer = normalize.Sequence{norm}
		c.CutAtSpaces = wordsApart(m, norm)
	} else if norm.DummySpace {
		cfg.Prefix = spbpe.PrefixAlways
	}
	model, err := spbpe.New(cfg)
	if err != nil {
		return false
	}
	c.Segments, c.Kind = segments(model), "SentencePiece BPE"
	return true
}

func (c *Config) sentenceUnigram(m *spec.SentencePiece, norm *spmodel.Normalizer) bool {
	cfg := unigram.Config{
		Pieces: m.Vocab.Tokens(), Scores: make([]float64, len(m.Scores)), UnkID: m.Unk, ByteFallback: m.ByteFallback,
		ByteIDs: m.ByteIDs,
		NoMatch: make([]bool, len(m.Kinds)), Split: unigram.SplitNone,
	}
	for id, kind := range m.Kinds {
		cfg.Scores[id] = float64(m.Scores[id])
		switch kind {
		case spec.UserDefined:
			cfg.UserDefined = append(cfg.UserDefined, uint32(id))
		case spec.Normal:
		default:
			cfg.NoMatch[id] = true
		}
	}
	c.CutAtSpaces = false
	if norm.SpaceSuffix {
		c.Normalizer = normalize.Sequence{norm}
	} else {
		cfg.Charsmap, cfg.Normalize = norm.Map, func(dst, text []byte) []byte {
			return norm.Append(dst, text, &normalize.Edges{First: true, Last: true})
		}
	}
	model, err := unigram.New(cfg)
	if err != nil {
		return false
	}
	c.Segments, c.Kind = segments(model), "SentencePiece Unigram"
	return true
}

// wordsApart reports whether text of a SentencePiece BPE may be cut before words: no piece spans
// the beginning of a word, so no merge does, and unknown characters do not fuse across it.
func wordsApart(m *spec.SentencePiece, norm *spmodel.Normalizer) bool {
	if _, ok := m.Vocab.ID([]byte(spec.Metaspace)); !ok || norm.SpaceSuffix || norm.MapsSpaces() {
		return false
	}
	for id, kind := range m.Kinds {
		text, _ := m.Vocab.Token(uint32(id))
		switch kind {
		case spec.UserDefined:
			if bytes.ContainsRune(text, ' ') {
				return false
			}
		case spec.Normal, spec.Unused:
		default:
			continue
		}
		if bytes.Contains(bytes.TrimLeft(text, spec.Metaspace), []byte(spec.Metaspace)) {
			return false
		}
	}
	return true
}

// plainSentencePiece installs the plain model of SentencePiece's BPE. Its Unigram has none.
func (c *Config) plainSentencePiece(m *spec.SentencePiece, s *spec.Spec) error {
	norm, ok := s.Normalizer[0].(*spmodel.Normalizer)
	if !ok || m.Unigram {
		return spec.Unsupportedf("SentencePiece Unigram that its engine refuses")
	}
	c.CutAtSpaces = wordsApart(m, norm)
	if c.CutAtSpaces {
		c.PreTokenizer = pretokenize.Sequence{pretokenize.BeforeWords{Mark: spec.MetaspaceChar}}
	}
	c.Model = plain.NewSentencePiece(m)
	return nil
}
