package spbpe

import (
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/chunkcache"
	"github.com/dsload/dsload/tokenize/internal/pairhash"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// pairTable maps a pair of neighbouring symbols to the symbol they merge to.
type pairTable struct {
	pairhash.Table
	ids []uint32 // the merged symbol of each rank; manyIDs if pieces of equal score share the rank

	tied map[uint64]uint32 // keys are pairs, for ranks with manyIDs
}

const (
	symbolBits = 20
	noRank     = pairhash.NoRank
	manyIDs    = ^uint32(0)
)

// build fills the table; of equal pairs the last counts, as in Hugging Face's map. It fails only
// for pairs crafted to collide.
func (t *pairTable) build(list []merge) (ok bool) {
	unset := manyIDs - 1
	for _, m := range list {
		for int(m.rank) >= len(t.ids) {
			t.ids = append(t.ids, unset)
		}
		if id := &t.ids[m.rank]; *id == unset {
			*id = m.id
		} else if *id != m.id {
			*id = manyIDs
		}
	}
	entries := make([]uint64, len(list))
	for i, m := range list {
		key := pairhash.Key(m.left, m.right)
		if t.ids[m.rank] == manyIDs {
			if t.tied == nil {
				t.tied = map[uint64]uint32{}
			}
			t.tied[key] = m.id
		}
		entries[i] = key<<24 | uint64(m.rank)
	}
	t.Table, ok = pairhash.New(entries)
	return ok
}

// result returns the symbol that a pair of that rank merges to.
func (t *pairTable) result(left, right, rank uint32) uint32 {
	if id := t.ids[rank]; id != manyIDs {
		return id
	}
	return t.tied[pairhash.Key(left, right)]
}

func (t *pairTable) bytes() int64 { return t.Bytes() + int64(len(t.ids))*4 }

// Flags of a character, above its id in the table of characters.
const (
	flagEnds   = 1 << 24 // it ends the left side of some merge
	flagStarts = 1 << 25 // it begins the right side of some merge
	flagFuses  = 1 << 26 // it may become the unknown token; neighbours that may, too, must not be cut apart
	runeIDMask = 1<<24 - 1
	noRuneID   = runeIDMask
)

// runeTable maps characters to ids and flags: pages of 256.
type runeTable struct {
	index [(utf8.MaxRune + 256) >> 8]uint16
	pages [][256]uint32
}

func (t *runeTable) get(r rune) uint32 {
	return t.pages[t.index[uint32(r)>>8]][r&255]
}

func (t *runeTable) entry(r rune) *uint32 {
	i := &t.index[uint32(r)>>8]
	if *i == 0 {
		t.pages = append(t.pages, t.pages[0])
		*i = uint16(len(t.pages) - 1)
	}
	return &t.pages[*i][r&255]
}

func (t *runeTable) bytes() int64 { return int64(len(t.pages))*1024 + int64(len(t.index))*2 }

// buildRunes fills the table of characters. A space stands for U+2581, which does not occur in
// windows.
func (m *Model) buildRunes(ids *vocab.Table, list []merge) {
	var none [256]uint32
	for i := range none {
		none[i] = noRuneID
		if !m.allBytes {
			none[i] |= flagFuses
		}
	}
	m.runes.pages = append(m.runes.pages, none)
	for id := range uint32(ids.Len()) {
		p, _ := ids.Token(id)
		r, n := utf8.DecodeRune(p)
		if n == 0 || n != len(p) || r == utf8.RuneError && n == 1 {
			continue
		}
		*m.runes.entry(toSpace(r)) = id
	}
	for i, r := range m.extra {
		e := m.runes.entry(toSpace(r))
		*e = *e&^runeIDMask | uint32(len(m.cfg.Pieces)+i)
	}
	for _, g := range list {
		x, y := m.lastRune(g.left), m.firstRune(g.right)
		*m.runes.entry(x) |= flagEnds
		*m.runes.entry(y) |= flagStarts
		if x < utf8.RuneSelf && y >= utf8.RuneSelf {
			m.asciiEnds[x] = true
		}
		if x >= utf8.RuneSelf && y < utf8.RuneSelf {
			m.asciiStarts[y] = true
		}
	}
}

func (m *Model) lastRune(sym uint32) rune { return m.runeOf(sym, utf8.DecodeLastRune) }

func (m *Model) firstRune(sym uint32) rune { return m.runeOf(sym, utf8.DecodeRune) }

func (m *Model) runeOf(sym uint32, decode func([]byte) (rune, int)) rune {
	if k := int(sym) - len(m.cfg.Pieces); k >= 0 {
		return toSpace(m.extra[k])
	}
	r, _ := decode(m.cfg.Pieces[sym])
	return toSpace(r)
}

func toSpace(r rune) rune {
	if r == metaspace {
		return ' '
	}
	return r
}

// buildTables groups the ASCII characters by what may follow them in one chunk. Groups are united,
// at the least cost, until six planes suffice. The seventh bit marks characters that join others
// only beyond ASCII or only as unknown ones.
func (m *Model) buildTables(list []merge) {
	var follow [128]chunkcache.Row
	for _, g := range list {
		x, y := m.lastRune(g.left), m.firstRune(g.right)
		if x < utf8.RuneSelf && y < utf8.RuneSelf && !(y == ' ' && m.cfg.SplitSpaces) {
			follow[x].Set(int(y))
		}
	}
	m.tables = chunkcache.Tables{}
	m.tables.Group(&follow, 6)
	for c := range 128 {
		if m.runes.get(rune(c))&flagFuses != 0 {
			m.tables.From[c] |= 1 << 6
			m.tables.To[c] |= 1 << 6
		}
		if m.asciiEnds[c] && m.tables.From[c] == 0 {
			m.tables.From[c] = 1 << 6
		}
		if m.asciiStarts[c] && m.tables.To[c] == 0 {
			m.tables.To[c] = 1 << 6
		}
	}
	if m.cfg.SplitSpaces {
		m.tables.To[' '] = 0 // a space joins nothing before it
	}
}

// joins reports whether text must not be cut between two characters, with spaces for U+2581.
func (m *Model) joins(x, y rune) bool {
	if y == ' ' && m.cfg.SplitSpaces {
		return false
	}
	if x < utf8.RuneSelf && y < utf8.RuneSelf {
		return m.tables.From[x]&m.tables.To[y] != 0
	}
	fx, fy := m.runes.get(x), m.runes.get(y)
	if fx&fy&flagFuses != 0 {
		return true
	}
	if fx&flagEnds == 0 || fy&flagStarts == 0 {
		return false
	}
	if x < utf8.RuneSelf {
		return m.asciiEnds[x]
	}
	if y < utf8.RuneSelf {
		return m.asciiStarts[y]
	}
	return true
}
