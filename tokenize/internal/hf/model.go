package hf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// model is the model of a tokenizer.json as the file describes it.
type model struct {
	kind    string
	table   *vocab.Table
	count   int            // entries of the vocabulary
	members map[string]int // offset of each member's value
	doc     *jsonx.Scanner
	mem     *spec.Meter
	ignored []string // members without effect

	// The offsets of the values that readAhead has read.
	vocabAt, mergesAt int
	mergesPrefix      string
	tooLarge          error // a limit was exceeded; another order of members would not help

	// BPE
	merges                              []vocab.Merge
	unkToken                            string
	hasUnk                              bool
	prefix, suffix                      string
	fuseUnk, byteFallback, ignoreMerges bool
	maxChars                            uint64 // WordPiece
	scores                              []float64
	unkID                               int // Unigram; -1 for none
}

// spec returns the model as a value; unk is the id of its unknown token.
func (m *model) spec(unk int64) spec.Model {
	switch m.kind {
	case "BPE":
		return &spec.BPE{Vocab: m.table, Merges: m.merges, Unk: unk, FuseUnk: m.fuseUnk, ByteFallback: m.byteFallback,
			IgnoreMerges: m.ignoreMerges,
			Prefix:       m.prefix, Suffix: m.suffix}
	case "WordPiece":
		return &spec.WordPiece{Vocab: m.table, Unk: unk, Prefix: m.prefix, MaxChars: m.maxChars}
	case "WordLevel":
		return &spec.WordLevel{Vocab: m.table, Unk: unk}
	}
	return &spec.Unigram{Vocab: m.table, Scores: m.scores, Unk: m.unkID, ByteFallback: m.byteFallback}
}

// fieldsOf lists what each kind of model may hold besides "type".
var fieldsOf = map[string][]string{
	"BPE": {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
		"ignore_merges",
		"vocab", "merges", "cache_capacity"},
	"WordPiece": {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"},
	"WordLevel": {"unk_token", "vocab"},
	"Unigram":   {"unk_id", "vocab", "byte_fallback"},
}

// readModel reads the model at the Scanner's position and leaves the Scanner after it.
func readModel(s *jsonx.Scanner, mem *spec.Meter) (*model, error) {
	m := &model{members: map[string]int{}, doc: s, mem: mem, unkID: -1}
	err := s.Object(func(key []byte) error {
		k := string(key)
		s.Peek()
		m.members[k] = s.Offset()
		if len(m.members) > 64 {
			return s.Errorf("model has too many fields")
		}
		if end, ok := m.readAhead(k); ok {
			s.Seek(end)
			return nil
		}
		if m.tooLarge != nil {
			return m.tooLarge
		}
		return s.Skip()
	})
	if err != nil {
		return nil, err
	}
	if err := m.findKind(); err != nil {
		return nil, err
	}
	if err := m.readFields(); err != nil {
		return nil, err
	}
	if err := m.readTokens(); err != nil {
		return nil, err
	}
	if m.kind == "BPE" {
		if err := m.readMerges(); err != nil {
			return nil, err
		}
	}
	m.members, m.doc, m.mem = nil, nil, nil
	return m, nil
}

// readAhead reads the vocabulary or the merges when the Scanner first reaches them: they are nearly
// all of a file, and reading them later would scan them twice. In most files the fields that they
// depend on come first. If anything is not as expected, they are read later, so that errors do not
// depend on the order of members.
func (m *model) readAhead(name string) (end int, ok bool) {
	var err error
	s, _ := m.has(name)
	switch {
	case name == "vocab" && s.Peek() == '{':
		err = m.readList(s, (*model).readVocab)
	case name == "vocab" && s.Peek() == '[':
		err = m.readList(s, (*model).readScores)
	case name == "merges" && s.Peek() == '[' && m.vocabAt > 0:
		if p, ok := m.has("continuing_subword_prefix"); ok {
			var prefix []byte
			prefix, err = p.String()
			m.prefix = string(prefix)
		}
		if err == nil {
			err = m.readPairs(s)
		}
	default:
		return 0, false
	}
	if errors.Is(err, spec.ErrTooLarge) {
		m.tooLarge = err
	}
	return s.Offset(), err == nil
}

// has reports whether the model has a member that is not null, and returns a Scanner at it.
func (m *model) has(name string) (*jsonx.Scanner, bool) {
	at, ok := m.members[name]
	if !ok {
		return nil, false
	}
	s := m.doc.At(at)
	return s, s.Peek() != 'n'
}

// findKind reads the type, or derives it from the fields of older files.
func (m *model) findKind() error {
	if s, ok := m.has("type"); ok {
		k, err := s.String()
		if err != nil {
			return err
		}
		m.kind = string(k)
		if fieldsOf[m.kind] == nil {
			return spec.Unsupportedf("model %q", k)
		}
		return nil
	}
	have := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := m.has(name); return !ok })
	}
	switch {
	case have("vocab", "merges"):
		m.kind = "BPE"
	case have("vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"):
		m.kind = "WordPiece"
	case have("vocab", "unk_token"):
		m.kind = "WordLevel"
	case have("vocab"):
		m.kind = "Unigram"
	default:
		return spec.Formatf("model without a vocabulary")
	}
	return nil
}

// readFields reads everything but the vocabulary and the merges.
func (m *model) readFields() error {
	fields := fieldsOf[m.kind]
	for _, name := range slices.Sorted(maps.Keys(m.members)) {
		if s, ok := m.has(name); ok && name != "type" && !slices.Contains(fields, name) && s.Peek() != 'f' {
			m.ignored = append(m.ignored, fmt.Sprintf("field %.80q of the %s model ignored, "+
				"as Hugging Face's library does", name, m.kind))
		}
	}
	if s, ok := m.has("dropout"); ok {
		p, err := s.Float()
		if err != nil {
			return err
		}
		if p != 0 {
			return spec.Unsupportedf("BPE with dropout %v: ids would be random; "+
				"set it to null to encode with all merges", p)
		}
	}
	for _, name := range fields {
		if s, ok := m.has(name); ok {
			if err := m.readField(s, name); err != nil {
				return err
			}
		}
	}
	if _, ok := m.has("max_input_chars_per_word"); !ok && m.kind == "WordPiece" {
		return spec.Formatf("WordPiece without max_input_chars_per_word")
	}
	if (m.kind == "WordPiece" || m.kind == "WordLevel") && !m.hasUnk {
		return spec.Formatf("%s without unk_token", m.kind)
	}
	return nil
}

func (m *model) readField(s *jsonx.Scanner, name string) (err error) {
	text := func(to *string) {
		var b []byte
		if b, err = s.String(); err == nil && len(b) > maxText {
			err = spec.TooLargef("field %q of the %s model has %d bytes; the limit is %d", name, m.kind, len(b), maxText)
		}
		*to = string(b)
	}
	switch name {
	case "fuse_unk":
		m.fuseUnk, err = s.Bool()
	case "byte_fallback":
		m.byteFallback, err = s.Bool()
	case "ignore_merges":
		m.ignoreMerges, err = s.Bool()
	case "continuing_subword_prefix":
		text(&m.prefix)
	case "end_of_word_suffix":
		text(&m.suffix)
	case "unk_token":
		text(&m.unkToken)
		m.hasUnk = true
	case "max_input_chars_per_word":
		m.maxChars, err = s.Uint(1 << 62)
	case "unk_id":
		var id uint64
		id, err = s.Uint(spec.MaxID)
		m.unkID = int(id)
	}
	return err
}
