package bytebpe

// SafeCut returns the largest n <= len(text) for which ids(text+rest) = ids(text[:n]) followed by
// ids(text[n:]+rest) for any rest, or 0 if there is none in the last 64 KiB.
func (m *Model) SafeCut(text []byte) int {
	if m.split == None {
		return 0
	}
	for n := len(text) - 1; n > max(0, len(text)-64<<10); n-- {
		if text[n]&0xc0 == 0x80 {
			continue
		}
		b, size := m.char(text, n)
		if size > 1 || text[n] < 0x80 {
			a := m.lastChar(text[:n])
			if m.cuts(a, b, text[n]) {
				return n
			}
		}
	}
	return 0
}

// cuts reports whether a pre-token always ends between a character of classes a and one of classes
// b that begins with byte c, whatever surrounds them. The patterns never look back, so the text
// after such a position is cut as if it stood alone.
func (m *Model) cuts(a, b, c uint8) bool {
	if a&space != 0 {
		return false
	}
	if c == ' ' {
		return true
	}
	la, lb := a&letter != 0, b&letter != 0
	na, nb := a&number != 0, b&number != 0
	if m.split == O200K && (a|b)&mark != 0 {
		return false
	}
	switch {
	case la && nb, na && lb:
		return true
	case na && b&lns == 0:
		return true
	case la && b&lns == 0:
		return m.split != O200K || c != '\''
	}
	return false
}
