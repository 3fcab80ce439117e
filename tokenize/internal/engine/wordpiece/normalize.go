package wordpiece

import (
	"sync"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// charTables caches the tables of the sixteen settings, with and without the pre-tokenizer: a few
// hundred KiB each.
var charTables [32]struct {
	once  sync.Once
	table *charTable
}

func (n Normalizer) table(split bool) *charTable {
	i := 0
	for k, on := range []bool{n.CleanText, n.HandleChineseChars, n.StripAccents, n.Lowercase, split} {
		if on {
			i |= 1 << k
		}
	}
	c := &charTables[i]
	c.once.Do(func() { c.table = newCharTable(n, split) })
	return c.table
}

// Append appends the normalized text.
func (n Normalizer) Append(dst, text []byte) []byte { return n.table(false).append(dst, text) }

// append appends the normalized text; characters that are words of their own get spaces around
// them. Marks that stay are put into canonical order: each moves before those of a higher combining
// class, but not past a character of class 0.
func (t *charTable) append(dst, text []byte) []byte {
	run := len(dst) // marks from here on may be reordered
	for len(text) > 0 {
		r, size := rune(text[0]), 1
		if r >= utf8.RuneSelf {
			r, size = decodeRune(text)
		}
		entry := t.get(r)
		switch entry & kindBits {
		case kindKeep:
			dst = append(dst, text[:size]...)
		case kindMap:
			dst = append(dst, t.replacement(entry)...)
		case kindMapOrder:
			for _, r := range string(t.replacement(entry)) {
				dst, run = t.appendOrdered(dst, run, r)
			}
			text = text[size:]
			continue
		case kindDrop:
			text = text[size:]
			continue
		case kindSpace:
			dst = append(dst, ' ')
		case kindAlone:
			dst = append(dst, ' ')
			dst = append(dst, text[:size]...)
			dst = append(dst, ' ')
		case kindHangul:
			dst = appendHangul(dst, r)
		case kindOrder:
			dst, run = t.appendOrdered(dst, run, r)
			text = text[size:]
			continue
		case kindWall:
		}
		run = len(dst)
		text = text[size:]
	}
	return dst
}

// appendOrdered appends a character in canonical order.
func (t *charTable) appendOrdered(dst []byte, run int, r rune) ([]byte, int) {
	order := charclass.BertTables().Order
	k := order[r]
	if k == 0 {
		dst = utf8.AppendRune(dst, r)
		return dst, len(dst)
	}
	at := len(dst)
	for at > run {
		p, n := utf8.DecodeLastRune(dst[:at])
		if order[p] <= k {
			break
		}
		at -= n
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	dst = append(dst, buf[:n]...)
	copy(dst[at+n:], dst[at:])
	copy(dst[at:], buf[:n])
	return dst, run
}

// appendHangul appends the canonical decomposition of a syllable.
func appendHangul(dst []byte, r rune) []byte {
	i := r - 0xAC00
	dst = appendThree(dst, 0x1100+i/588)
	dst = appendThree(dst, 0x1161+i%588/28)
	if i%28 != 0 {
		dst = appendThree(dst, 0x11A7+i%28)
	}
	return dst
}

func appendThree(dst []byte, r rune) []byte {
	return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
}

// decodeRune is utf8.DecodeRune for a character beyond ASCII in well-formed text.
func decodeRune(text []byte) (r rune, size int) {
	switch b := text[0]; {
	case b >= 0xC0 && b < 0xE0 && len(text) > 1:
		return rune(b&0x1F)<<6 | rune(text[1]&0x3F), 2
	case b >= 0xE0 && b < 0xF0 && len(text) > 2:
		return rune(b&0xF)<<12 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), 3
	}
	return utf8.DecodeRune(text)
}
