package hf

import (
	"bytes"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// readTokens reads the vocabulary, unless readAhead has done so.
func (m *model) readTokens() error {
	s, ok := m.has("vocab")
	if !ok {
		return spec.Formatf("%s model without a vocabulary", m.kind)
	}
	if m.vocabAt != s.Offset() || (m.kind == "Unigram") != (m.scores != nil) {
		read := (*model).readVocab
		if m.kind == "Unigram" {
			read = (*model).readScores
		}
		if err := m.readList(s, read); err != nil {
			return err
		}
	}
	// A Unigram model may repeat a piece: its last id and score count.
	if first, again, ok := m.table.Twice(); ok && m.kind != "Unigram" {
		token, _ := m.table.Token(first)
		return spec.Unsupportedf("token %q has ids %d and %d", token, first, again)
	}
	if m.unkID >= m.count {
		return spec.Formatf("unk_id %d in a vocabulary of %d tokens", m.unkID, m.count)
	}
	return nil
}

// tokenList holds concatenated tokens, as a vocab.Table takes them.
type tokenList struct {
	blob    []byte
	offsets []uint32
	mem     *spec.Meter
	taken   int64 // mem's; free returns it
}

// newTokenList makes room for the tokens that the rest of a file is likely to hold.
func newTokenList(s *jsonx.Scanner, mem *spec.Meter) (*tokenList, error) {
	l := &tokenList{mem: mem}
	if err := l.take(int64(s.Rest()) / 3); err != nil {
		return nil, err
	}
	l.blob = make([]byte, 0, s.Rest()/6)
	l.offsets = append(make([]uint32, 0, s.Rest()/24+1), 0)
	return l, nil
}

func (l *tokenList) take(n int64) error {
	err := l.mem.Take(n, "the vocabulary")
	if err == nil {
		l.taken += n
	}
	return err
}

func (l *tokenList) free() { l.mem.Free(l.taken) }

// takeTable counts the memory of a table of the list's tokens.
func (m *model) takeTable(l *tokenList, perToken int64) error {
	return m.mem.Take(perToken*int64(l.len())+int64(len(l.blob)), "the vocabulary")
}

func (l *tokenList) len() int { return len(l.offsets) - 1 }

func (l *tokenList) add(token []byte) error {
	if n := len(l.blob) + len(token); n > cap(l.blob) {
		n = max(n, cap(l.blob)+cap(l.blob)/4)
		if err := l.take(int64(n)); err != nil {
			return err
		}
		l.blob = append(make([]byte, 0, n), l.blob...)
	}
	if n := len(l.offsets); n == cap(l.offsets) {
		if err := l.take(8 * int64(n)); err != nil {
			return err
		}
	}
	l.blob = append(l.blob, token...)
	l.offsets = append(l.offsets, uint32(len(l.blob)))
	return nil
}

// table returns a table of the tokens, copied to slices of the right size.
func (l *tokenList) table() *vocab.Table {
	return vocab.FromBlob(bytes.Clone(l.blob), slices.Clone(l.offsets))
}

// readList reads the vocabulary by read, which adds its tokens to the list.
func (m *model) readList(s *jsonx.Scanner, read func(m *model, s *jsonx.Scanner, l *tokenList) error) error {
	m.vocabAt, m.mergesAt = 0, 0
	at := s.Offset()
	l, err := newTokenList(s, m.mem)
	if err != nil {
		return err
	}
	defer l.free()
	if err := read(m, s, l); err != nil {
		return err
	}
	m.vocabAt = at
	return nil
}

// readVocab reads {"token": id, …}.
func (m *model) readVocab(s *jsonx.Scanner, l *tokenList) error {
	var ids []uint32 // nil while ids count up from 0
	top, counting := uint32(0), true
	err := s.Object(func(key []byte) error {
		if err := l.add(key); err != nil {
			return err
		}
		id, err := s.Uint(spec.MaxID)
		if n := l.len() - 1; counting && id != uint64(n) {
			counting = false
			for i := range n {
				ids = append(ids, uint32(i))
			}
		}
		if !counting {
			ids = append(ids, uint32(id))
		}
		top = max(top, uint32(id))
		return err
	})
	if err != nil {
		return err
	}
	m.count, m.scores = l.len(), nil
	if m.count > 0 && int(top) > 4*m.count+1<<16 {
		return spec.Formatf("id %d in a vocabulary of %d tokens", top, m.count)
	}
	perToken := int64(spec.ListedTokenBytes)
	if !counting {
		perToken += 36 // ids, and a list by id
	}
	if err := m.takeTable(l, perToken); err != nil {
		return err
	}
	if counting {
		m.table = l.table()
	} else {
		tokens := make([][]byte, top+1)
		for i, id := range ids {
			t := l.blob[l.offsets[i]:l.offsets[i+1]]
			if tokens[id] != nil {
				return spec.Unsupportedf("id %d belongs to both %q and %q", id, tokens[id], t)
			}
			tokens[id] = t
		}
		m.table = vocab.New(tokens)
	}
	return nil
}

// readScores reads [["token", score], …].
func (m *model) readScores(s *jsonx.Scanner, l *tokenList) error {
	if err := l.take(8 * int64(cap(l.offsets))); err != nil {
		return err
	}
	scores := make([]float64, 0, cap(l.offsets))
	err := s.Array(func() error {
		n := 0
		return s.Array(func() error {
			n++
			switch n {
			case 1:
				t, err := s.String()
				if err == nil {
					err = l.add(t)
				}
				return err
			case 2:
				f, err := s.Float()
				if n := len(scores); n == cap(scores) && err == nil {
					err = l.take(18 * int64(n))
				}
				scores = append(scores, f)
				return err
			}
			return s.Errorf("expected a token and its score")
		})
	})
	if err != nil {
		return err
	}
	m.count = l.len()
	if len(scores) != m.count {
		return spec.Formatf("Unigram vocabulary: tokens without scores")
	}
	if m.count > spec.MaxID {
		return spec.Formatf("Unigram vocabulary of %d tokens", m.count)
	}
	if err := m.takeTable(l, spec.ListedTokenBytes+8); err != nil {
		return err
	}
	m.scores, m.table = slices.Clone(scores), l.table()
	return nil
}

// readMerges reads the merges, unless readAhead has done so.
func (m *model) readMerges() error {
	s, ok := m.has("merges")
	if !ok {
		return spec.Formatf("BPE model without merges")
	}
	if m.mergesAt == s.Offset() && m.mergesPrefix == m.prefix {
		return nil
	}
	return m.readPairs(s)
}

// readPairs reads ["a b", …] or [["a", "b"], …].
func (m *model) readPairs(s *jsonx.Scanner) error {
	at := s.Offset()
	p := pairReader{model: m, s: s}
	if err := m.mem.Take(12*int64(m.count), "the merges"); err != nil {
		return err
	}
	m.merges, m.mergesAt = make([]vocab.Merge, 0, m.count), 0
	if err := s.Array(p.read); err != nil {
		return err
	}
	m.mergesAt, m.mergesPrefix = at, m.prefix
	return nil
}

// pairReader reads merges one by one.
type pairReader struct {
	*model
	s      *jsonx.Scanner
	joined []byte
	last   uint32 // the token of the last pair
}

func (p *pairReader) read() error {
	s := p.s
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
			pair[n], err = p.lookup(t)
			n++
			return err
		})
		if err == nil && n != 2 {
			err = s.Errorf("a merge has two parts")
		}
		if err != nil {
			return err
		}
		return p.add(pair[0], pair[1])
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
	a, err := p.lookup(left)
	if err != nil {
		return err
	}
	b, err := p.lookup(right)
	if err != nil {
		return err
	}
	return p.add(a, b)
}

func (p *pairReader) lookup(token []byte) (uint32, error) {
	id, ok := p.table.ID(token)
	if !ok {
		return 0, p.s.Errorf("merge of %q, which is not in the vocabulary", token)
	}
	return id, nil
}

// add finds the token that a pair merges to. Vocabularies list tokens in the order of their merges,
// so it is usually the token after the last one, or the last one again in SentencePiece's models,
// where several pairs merge to the same token.
func (p *pairReader) add(a, b uint32) error {
	left, _ := p.table.Token(a)
	right, _ := p.table.Token(b)
	if len(right) < len(p.prefix) {
		return p.s.Errorf("merge with %q, which lacks the prefix %q", right, p.prefix)
	}
	right = right[len(p.prefix):]
	c := p.last
	if !p.makes(c, left, right) {
		if c++; !p.makes(c, left, right) {
			p.joined = append(append(p.joined[:0], left...), right...)
			var err error
			if c, err = p.lookup(p.joined); err != nil {
				return err
			}
		}
	}
	p.last = c
	if n := len(p.merges); n == cap(p.merges) {
		// Growing copies the list and adds a quarter if it is long.
		if err := p.mem.Take(12*int64(n+n/4), "the merges"); err != nil {
			return err
		}
	}
	p.merges = append(p.merges, vocab.Merge{Left: a, Right: b, Result: c})
	return nil
}

// makes reports whether a token is the concatenation of left and right.
func (p *pairReader) makes(id uint32, left, right []byte) bool {
	t, ok := p.table.Token(id)
	return ok && len(t) == len(left)+len(right) && string(t[:len(left)]) == string(left) &&
		string(t[len(left):]) == string(right)
}
