package spbpe

import (
	"bytes"
	"fmt"
	"slices"
)

// userMatcher finds SentencePiece's user-defined symbols: the leftmost, and the longest that begins
// there.
type userMatcher struct {
	any    bool
	byHead [256][]userSymbol // longest first
	inside map[[2]byte]bool  // bytes that are neighbours in some symbol
}

type userSymbol struct {
	text []byte
	id   uint32
}

func (m *Model) buildUser() error {
	u := &m.user
	for _, id := range m.cfg.UserDefined {
		if int(id) >= len(m.cfg.Pieces) || len(m.cfg.Pieces[id]) == 0 {
			return fmt.Errorf("spbpe: user-defined symbol %d of %d pieces", id, len(m.cfg.Pieces))
		}
		p := m.cfg.Pieces[id]
		if bytes.Contains(p, metaspaceBytes) {
			return fmt.Errorf("%w: the user-defined symbol %q has a space", ErrUnsupported, p)
		}
		if u.inside == nil {
			u.inside = map[[2]byte]bool{}
		}
		u.any = true
		u.byHead[p[0]] = append(u.byHead[p[0]], userSymbol{p, id})
		for i := 1; i < len(p); i++ {
			u.inside[[2]byte{p[i-1], p[i]}] = true
		}
	}
	for i := range u.byHead {
		slices.SortStableFunc(u.byHead[i], func(a, b userSymbol) int { return len(b.text) - len(a.text) })
	}
	return nil
}

// cutAllowed reports whether no symbol can span a cut at offset n.
func (u *userMatcher) cutAllowed(text []byte, n int) bool {
	if !u.any || n == 0 {
		return true
	}
	if n < len(text) {
		return !u.inside[[2]byte{text[n-1], text[n]}]
	}
	for pair := range u.inside {
		if pair[0] == text[n-1] {
			return false
		}
	}
	return true
}

// match returns the symbol that text begins with, if any.
func (u *userMatcher) match(text []byte) (userSymbol, bool) {
	for _, s := range u.byHead[text[0]] {
		if bytes.HasPrefix(text, s.text) {
			return s, true
		}
	}
	return userSymbol{}, false
}

// appendUser encodes text with user-defined symbols, which neither merge nor fuse with their
// neighbours.
func (e *Encoder) appendUser(dst []uint32, text []byte, first bool) []uint32 {
	begin := 0
	for i := 0; i < len(text); {
		s, ok := e.m.user.match(text[i:])
		if !ok {
			i++
			continue
		}
		if i == 0 && first && e.prefixed(text) {
			dst = e.appendChunk(dst, []byte{' '})
		} else {
			dst = e.appendText(dst, text[begin:i], first && begin == 0)
		}
		dst = append(dst, s.id)
		i += len(s.text)
		begin = i
	}
	return e.appendText(dst, text[begin:], first && begin == 0)
}
