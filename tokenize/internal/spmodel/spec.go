package spmodel

import (
	"errors"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/charsmap"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// Read reads a SentencePiece .model of type BPE or Unigram. Errors wrap those of package spec.
func Read(data []byte, mem *spec.Meter) (*spec.Spec, error) {
	pieces, err := countPieces(data)
	if err != nil {
		return nil, err
	}
	// The pieces, the table that finds equal ones, lists of them, and the character map, which is
	// read twice.
	if err := mem.Take(spec.PieceBytes*int64(pieces)+3*int64(len(data)), "the pieces"); err != nil {
		return nil, err
	}
	m, err := parse(data)
	if err != nil {
		return nil, err
	}
	switch {
	case m.Type != BPE && m.Type != Unigram:
		return nil, spec.Unsupportedf("SentencePiece model of type %s",
			[...]string{"", "unigram", "bpe", "word", "char"}[m.Type])
	case m.HasDenormalizer:
		return nil, spec.Unsupportedf("SentencePiece model with a denormalizer")
	case !m.EscapeSpaces:
		return nil, spec.Unsupportedf("SentencePiece model with escape_whitespaces false")
	}
	norm, err := m.normalizer()
	if errors.Is(err, charsmap.ErrTooLarge) {
		return nil, spec.TooLargef("%v", err)
	}
	if err != nil {
		return nil, spec.Formatf("%v", err)
	}
	s := &spec.Spec{
		Name: "model", FileName: "tokenizer.model", Fingerprint: spec.Fingerprint("sentencepiece", data),
		Around:     spec.Around{CLS: -1, SEP: -1},
		Names:      spec.Names{Normalizer: "SentencePiece", Model: "BPE", Decoder: "SentencePiece"},
		Normalizer: []normalize.Component{norm},
	}
	model := m.model()
	s.Model = model
	if model.Unigram {
		s.Names.Model = "Unigram"
	}
	s.Decoder = spec.JoinPieces{Unknown: m.UnkSurface, StripsSpace: norm.DummySpace || norm.ExtraSpaces,
		StripsAll: norm.ExtraSpaces, Kinds: model.Kinds}
	return s, nil
}

// Complete adds to a Spec of Read what the files beside its file say.
func Complete(s *spec.Spec, o *spec.Outside, mem *spec.Meter) error {
	if err := s.Complete(o, mem); err != nil {
		return err
	}
	if o == nil {
		return nil
	}
	m, bpe := s.Model.(*spec.SentencePiece)
	if n, ok := s.Normalizer[0].(*Normalizer); ok && bpe && !m.Unigram && len(s.Raw) > 0 && !o.Legacy &&
		strings.TrimSuffix(o.Class, "Fast") == "LlamaTokenizer" {
		once := *n
		once.Once = true
		s.Normalizer = []normalize.Component{&once}
	}
	return nil
}

// model returns the model as a value.
func (m *Model) model() *spec.SentencePiece {
	tokens := make([][]byte, len(m.Pieces))
	for id, p := range m.Pieces {
		tokens[id] = p.Text
	}
	s := &spec.SentencePiece{
		Unigram: m.Type == Unigram, Vocab: vocab.New(tokens), Scores: make([]float32, len(tokens)),
		Kinds: make([]spec.PieceKind, len(tokens)),
		Unk:   m.UnkID, ByteFallback: m.ByteFallback,
	}
	for b := range s.ByteIDs {
		s.ByteIDs[b] = -1
	}
	for id, p := range m.Pieces {
		s.Scores[id], s.Kinds[id] = p.Score, p.Kind
		if b, ok := ByteOf(p.Text); ok && p.Kind == spec.Byte {
			s.ByteIDs[b] = int32(id)
		}
	}
	return s
}
