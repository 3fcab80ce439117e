package tokenize

import (
	"bytes"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// maxID bounds token ids: nobody's vocabulary is near it, and tables are indexed by id.
const maxID = 1<<24 - 1

// hfModel is the model of a tokenizer.json as the file has it.
type hfModel struct {
	kind    string
	tokens  [][]byte // by id; nil where an id is not used
	count   int      // entries of the vocabulary
	table   *vocab.Table
	members map[string]int // offset of each member's value
	doc     *jsonx.Scanner

	// BPE
	left, right, result                 []uint32
	unkToken                            string
	hasUnk                              bool
	prefix, suffix                      string
	fuseUnk, byteFallback, ignoreMerges bool
	maxChars                            uint64 // WordPiece
	scores                              []float64
	unkID                               int // Unigram; -1 for none
}

// modelFields lists what each kind of model may hold besides "type".
var modelFields = map[string][]string{
	"BPE": {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
		"vocab", "merges", "cache_capacity"},
	"WordPiece": {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"},
	"WordLevel": {"unk_token", "vocab"},
	"Unigram":   {"unk_id", "vocab", "byte_fallback"},
}

// readModel reads the model at the Scanner's position, and leaves the Scanner behind it.
func readModel(s *jsonx.Scanner) (*hfModel, error) {
	m := &hfModel{members: map[string]int{}, doc: s, unkID: -1}
	err := s.Object(func(key []byte) error {
		k := string(key)
		s.Peek()
		m.members[k] = s.Offset()
		if len(m.members) > 64 {
			return s.Errorf("model has too many fields")
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
	if m.kind == "Unigram" {
		err = m.readScores()
	} else {
		err = m.readVocab()
	}
	if err != nil {
		return nil, err
	}
	m.table = vocab.New(m.tokens)
	for id, t := range m.tokens {
		if t == nil {
			continue
		}
		if first, _ := m.table.ID(t); first != uint32(id) {
			return nil, unsupportedf("token %q has ids %d and %d", t, first, id)
		}
		m.tokens[id], _ = m.table.Token(uint32(id)) // one copy of the text is enough
	}
	if m.kind == "BPE" {
		if err := m.readMerges(); err != nil {
			return nil, err
		}
	}
	m.members, m.doc = nil, nil
	return m, nil
}

// has says whether the model has a member that is not null, and returns a Scanner at it.
func (m *hfModel) has(name string) (*jsonx.Scanner, bool) {
	at, ok := m.members[name]
	if !ok {
		return nil, false
	}
	s := m.doc.At(at)
	return s, s.Peek() != 'n'
}

// findKind reads the type, or tells from the fields of older files what it must be.
func (m *hfModel) findKind() error {
	if s, ok := m.has("type"); ok {
		k, err := s.String()
		if err != nil {
			return err
		}
		m.kind = string(k)
		if modelFields[m.kind] == nil {
			return unsupportedf("model %q", k)
		}
		return nil
	}
	have := func(names ...string) bool {
		for _, n := range names {
			if _, ok := m.has(n); !ok {
				return false
			}
		}
		return true
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
		return formatf("model without a vocabulary")
	}
	return nil
}

// readFields reads everything but the vocabulary and the merges.
func (m *hfModel) readFields() error {
	known := map[string]bool{"type": true}
	for _, f := range modelFields[m.kind] {
		known[f] = true
	}
	for name := range m.members {
		if s, ok := m.has(name); ok && !known[name] && s.Peek() != 'f' {
			return unsupportedf("field %q of the %s model at byte %d", name, m.kind, m.members[name])
		}
	}
	if s, ok := m.has("dropout"); ok {
		p, err := s.Float()
		if err != nil {
			return err
		}
		if p != 0 {
			return unsupportedf("BPE with dropout %v: ids would be random; set it to null to encode with all merges", p)
		}
	}
	for name, to := range map[string]*bool{"fuse_unk": &m.fuseUnk, "byte_fallback": &m.byteFallback, "ignore_merges": &m.ignoreMerges} {
		if s, ok := m.has(name); ok && known[name] {
			b, err := s.Bool()
			if err != nil {
				return err
			}
			*to = b
		}
	}
	for name, to := range map[string]*string{"continuing_subword_prefix": &m.prefix, "end_of_word_suffix": &m.suffix, "unk_token": &m.unkToken} {
		if s, ok := m.has(name); ok && known[name] {
			b, err := s.String()
			if err != nil {
				return err
			}
			*to = string(b)
			m.hasUnk = m.hasUnk || name == "unk_token"
		}
	}
	if s, ok := m.has("unk_id"); ok && m.kind == "Unigram" {
		id, err := s.Uint(maxID)
		if err != nil {
			return err
		}
		m.unkID = int(id)
	}
	if m.kind == "WordPiece" {
		s, ok := m.has("max_input_chars_per_word")
		if !ok {
			return formatf("WordPiece without max_input_chars_per_word")
		}
		n, err := s.Uint(1 << 62)
		if err != nil {
			return err
		}
		m.maxChars = n
	}
	if (m.kind == "WordPiece" || m.kind == "WordLevel") && !m.hasUnk {
		return formatf("%s without unk_token", m.kind)
	}
	return nil
}

// readVocab reads {"token": id, …}.
func (m *hfModel) readVocab() error {
	s, ok := m.has("vocab")
	if !ok {
		return formatf("%s model without a vocabulary", m.kind)
	}
	var blob []byte
	var ends, ids []uint32
	top := uint32(0)
	err := s.Object(func(key []byte) error {
		blob = append(blob, key...)
		ends = append(ends, uint32(len(blob)))
		id, err := s.Uint(maxID)
		ids = append(ids, uint32(id))
		top = max(top, uint32(id))
		return err
	})
	if err != nil {
		return err
	}
	m.count = len(ids)
	if m.count == 0 {
		return nil
	}
	if int(top) > 4*m.count+1<<16 {
		return formatf("id %d in a vocabulary of %d tokens", top, m.count)
	}
	m.tokens = make([][]byte, top+1)
	from := uint32(0)
	for i, id := range ids {
		if m.tokens[id] != nil {
			return unsupportedf("id %d belongs to both %q and %q", id, m.tokens[id], blob[from:ends[i]])
		}
		m.tokens[id] = blob[from:ends[i]:ends[i]]
		from = ends[i]
	}
	return nil
}

// readScores reads [["token", score], …].
func (m *hfModel) readScores() error {
	s, ok := m.has("vocab")
	if !ok {
		return formatf("Unigram model without a vocabulary")
	}
	var blob []byte
	var ends []uint32
	err := s.Array(func() error {
		n := 0
		return s.Array(func() error {
			n++
			switch n {
			case 1:
				t, err := s.String()
				blob = append(blob, t...)
				ends = append(ends, uint32(len(blob)))
				return err
			case 2:
				f, err := s.Float()
				m.scores = append(m.scores, f)
				return err
			}
			return s.Errorf("expected a token and its score")
		})
	})
	if err != nil {
		return err
	}
	if len(m.scores) != len(ends) {
		return formatf("Unigram vocabulary: tokens without scores")
	}
	if len(ends) > maxID {
		return formatf("Unigram vocabulary of %d tokens", len(ends))
	}
	from := uint32(0)
	for _, end := range ends {
		m.tokens = append(m.tokens, blob[from:end:end])
		from = end
	}
	m.count = len(m.tokens)
	if m.unkID >= m.count {
		return formatf("unk_id %d in a vocabulary of %d tokens", m.unkID, m.count)
	}
	return nil
}

// readMerges reads ["a b", …] or [["a", "b"], …].
func (m *hfModel) readMerges() error {
	s, ok := m.has("merges")
	if !ok {
		return formatf("BPE model without merges")
	}
	lookup := func(token []byte) (uint32, error) {
		id, ok := m.table.ID(token)
		if !ok {
			return 0, s.Errorf("merge of %q, which is not in the vocabulary", token)
		}
		return id, nil
	}
	var joined []byte
	add := func(a, b uint32) error {
		left, _ := m.table.Token(a)
		right, _ := m.table.Token(b)
		if len(right) < len(m.prefix) {
			return s.Errorf("merge with %q, which lacks the prefix %q", right, m.prefix)
		}
		joined = append(append(joined[:0], left...), right[len(m.prefix):]...)
		c, err := lookup(joined)
		if err != nil {
			return err
		}
		m.left, m.right, m.result = append(m.left, a), append(m.right, b), append(m.result, c)
		return nil
	}
	return s.Array(func() error {
		if s.Peek() == '[' {
			var pair [2]uint32
			n := 0
			err := s.Array(func() error {
				t, err := s.String()
				if err != nil {
					return err
				}
				if n == 2 {
					return s.Errorf("a merge has two parts")
				}
				pair[n], err = lookup(t)
				n++
				return err
			})
			if err == nil && n != 2 {
				err = s.Errorf("a merge has two parts")
			}
			if err != nil {
				return err
			}
			return add(pair[0], pair[1])
		}
		line, err := s.String()
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("#version")) {
			return nil
		}
		left, right, ok := bytes.Cut(line, []byte(" "))
		if !ok || bytes.IndexByte(right, ' ') >= 0 {
			return s.Errorf("a merge has two parts, not %q", line)
		}
		a, err := lookup(left)
		if err != nil {
			return err
		}
		b, err := lookup(right)
		if err != nil {
			return err
		}
		return add(a, b)
	})
}
