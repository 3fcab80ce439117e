package plain

import (
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/spec"
)

// WordLevel takes each piece as a token.
type WordLevel struct{ spec.WordLevel }

// NewWordLevel returns the model.
func NewWordLevel(m *spec.WordLevel) *WordLevel { return &WordLevel{*m} }

// Append implements Model.
func (m *WordLevel) Append(dst []uint32, piece []byte, s *Scratch) []uint32 {
	s.note(0, len(piece))
	if id, ok := m.Vocab.ID(piece); ok {
		return append(dst, id)
	}
	return appendUnk(dst, m.Unk)
}

// ResidentBytes implements Model.
func (m *WordLevel) ResidentBytes() int64 { return 0 }

func appendUnk(dst []uint32, unk int64) []uint32 {
	if unk >= 0 {
		dst = append(dst, uint32(unk))
	}
	return dst
}

// WordPiece spells a piece with the longest tokens from the left; a piece that cannot be spelled is
// unknown.
type WordPiece struct {
	cfg     spec.WordPiece
	longest int // bytes of the longest token
}

// NewWordPiece returns the model.
func NewWordPiece(c *spec.WordPiece) *WordPiece {
	m := &WordPiece{cfg: *c}
	for id := range c.Vocab.Len() {
		t, _ := c.Vocab.Token(uint32(id))
		m.longest = max(m.longest, len(t))
	}
	return m
}

// ResidentBytes implements Model.
func (m *WordPiece) ResidentBytes() int64 { return 0 }

// Append implements Model.
func (m *WordPiece) Append(dst []uint32, piece []byte, s *Scratch) []uint32 {
	if uint64(len(piece)) > m.cfg.MaxChars && uint64(utf8.RuneCount(piece)) > m.cfg.MaxChars {
		s.note(0, len(piece))
		return appendUnk(dst, m.cfg.Unk)
	}
	from, noted := len(dst), len(s.Extents)
	for start := 0; start < len(piece); {
		s.text = s.text[:0]
		if start > 0 {
			s.text = append(s.text, m.cfg.Prefix...)
		}
		head := len(s.text)
		end := min(len(piece), start+max(0, m.longest-head))
		for end < len(piece) && end > start && !utf8.RuneStart(piece[end]) {
			end--
		}
		s.text = append(s.text, piece[start:end]...)
		for end > start {
			if id, ok := m.cfg.Vocab.ID(s.text[:head+end-start]); ok {
				dst = append(dst, id)
				s.note(start, end)
				break
			}
			_, n := utf8.DecodeLastRune(piece[start:end])
			end -= n
		}
		if end <= start {
			s.Extents = s.Extents[:noted]
			s.note(0, len(piece))
			return appendUnk(dst[:from], m.cfg.Unk)
		}
		start = end
	}
	return dst
}
