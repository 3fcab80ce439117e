package normalize

import (
	"bytes"
	"slices"
	"sort"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// form is one of the four Unicode normalization forms, as of Unicode 9, which Hugging Face's
// library follows.
//
// golang.org/x/text follows a later version and limits runs of combining marks to 30 (it inserts
// U+034F). So it only checks whether text is already normal and provides character data. The rest
// is done here; characters newer than Unicode 9 count as plain starters.
type form struct {
	decompose norm.Form
	check     norm.Form
	compose   bool
}

// The normalization forms.
var (
	NFC  Step = form{norm.NFD, norm.NFC, true}
	NFD  Step = form{norm.NFD, norm.NFD, false}
	NFKC Step = form{norm.NFKD, norm.NFKC, true}
	NFKD Step = form{norm.NFKD, norm.NFKD, false}
)

// mark is a decomposed character with its combining class.
type mark struct {
	r      rune
	ccc    uint8
	change int16 // see Change
}

const (
	hangulBase, hangulEnd              = 0xAC00, 0xD7A4
	jamoLBase, jamoVBase, jamoTBase    = 0x1100, 0x1161, 0x11A7
	jamoLCount, jamoVCount, jamoTCount = 19, 21, 28
)

// Append implements Step.
func (f form) Append(dst, src []byte, e *Edges) []byte {
	n := f.check.QuickSpan(src)
	if n == len(src) {
		return append(dst, src...)
	}
	from := len(dst)
	// Everything before the last starter of the normal part is final.
	for n > 0 && !utf8.RuneStart(src[n]) {
		n--
	}
	for n > 0 {
		r, size := utf8.DecodeLastRune(src[:n])
		n -= size
		if r < 0x80 {
			break
		}
	}
	dst = append(dst, src[:n]...)
	c := composer{dst: dst, form: f}
	for i := n; i < len(src) && !e.over(len(c.dst)-from); {
		r, size := utf8.DecodeRune(src[i:])
		c.added = false
		c.decompose(r, src[i:i+size])
		i += size
	}
	c.flush()
	dst = c.dst
	if e.Zero > n {
		e.Zero = f.zero(src[:e.Zero], dst[from:])
	}
	return dst
}

// zero returns how much of out, the normal form of a text that begins with head, comes from head:
// head's own normal form, or the bytes up to the character that head's last one was composed to.
func (f form) zero(head, out []byte) int {
	c := composer{form: f}
	c.all(head)
	if bytes.HasPrefix(out, c.dst) {
		return len(c.dst)
	}
	_, n := utf8.DecodeLastRune(c.dst)
	keep := min(len(c.dst)-n, len(out))
	_, n = utf8.DecodeRune(out[keep:])
	return keep + n
}

// composer collects a starter and what follows it, up to the next character that cannot interact
// with them.
type composer struct {
	form
	dst     []byte
	run     []mark
	changes *[]Change // if not nil, output goes here too
	added   bool      // the character being decomposed has already produced one
}

// decompose adds character r, whose bytes are b.
func (c *composer) decompose(r rune, b []byte) {
	switch {
	case r < 0x80:
		c.add(r, 0)
		return
	case r >= hangulBase && r < hangulEnd:
		s := r - hangulBase
		c.add(jamoLBase+s/(jamoVCount*jamoTCount), 0)
		c.add(jamoVBase+s%(jamoVCount*jamoTCount)/jamoTCount, 0)
		if t := s % jamoTCount; t != 0 {
			c.add(jamoTBase+t, 0)
		}
		return
	case newer(r):
		c.add(r, 0)
		return
	}
	p := c.form.decompose.Properties(b)
	d := p.Decomposition()
	if d == nil {
		c.add(r, p.CCC())
		return
	}
	for len(d) > 0 {
		x, n := utf8.DecodeRune(d)
		if x >= hangulBase && x < hangulEnd {
			c.decompose(x, d[:n])
		} else {
			c.add(x, norm.NFD.Properties(d[:n]).CCC())
		}
		d = d[n:]
	}
}

func (c *composer) add(r rune, ccc uint8) {
	if ccc == 0 && len(c.run) > 0 {
		// What came before is final, except a lone starter at the end, which may compose with this
		// one.
		c.order()
		keep := 0
		if c.compose && r >= 0x80 && c.run[len(c.run)-1].ccc == 0 {
			keep = 1
		}
		n := len(c.run) - keep
		c.write(c.run[:n])
		c.run = append(c.run[:0], c.run[n:]...)
	}
	m := mark{r: r, ccc: ccc}
	if c.added {
		m.change = 1
	}
	c.added = true
	c.run = append(c.run, m)
}

// order puts marks into canonical order and composes them with the preceding starter.
func (c *composer) order() {
	if len(c.run) < 2 {
		return
	}
	for i := 0; i < len(c.run); {
		j := i
		for j < len(c.run) && c.run[j].ccc != 0 {
			j++
		}
		if j-i > 1 {
			slices.SortStableFunc(c.run[i:j], func(a, b mark) int { return int(a.ccc) - int(b.ccc) })
		}
		i = j + 1
	}
	if !c.compose {
		return
	}
	out, starter, last := c.run[:0], -1, -1
	for _, m := range c.run {
		if starter >= 0 && last < int(m.ccc) {
			if r, ok := composePair(out[starter].r, m.r); ok {
				out[starter].r = r
				out[starter].change += m.change - 1
				continue
			}
		}
		if m.ccc == 0 {
			starter, last = len(out), -1
		} else {
			last = int(m.ccc)
		}
		out = append(out, m)
	}
	c.run = out
}

func (c *composer) write(run []mark) {
	for _, m := range run {
		c.dst = utf8.AppendRune(c.dst, m.r)
		if c.changes != nil {
			*c.changes = append(*c.changes, Change{m.r, int(m.change)})
		}
	}
}

func (c *composer) all(text []byte) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		c.added = false
		c.decompose(r, text[i:i+n])
		i += n
	}
	c.flush()
}

func (c *composer) flush() {
	c.order()
	c.write(c.run)
	c.run = c.run[:0]
}

// composePair returns the primary composite of two characters.
func composePair(a, b rune) (rune, bool) {
	if a >= jamoLBase && a < jamoLBase+jamoLCount && b >= jamoVBase && b < jamoVBase+jamoVCount {
		return hangulBase + ((a-jamoLBase)*jamoVCount+b-jamoVBase)*jamoTCount, true
	}
	if a >= hangulBase && a < hangulEnd && (a-hangulBase)%jamoTCount == 0 && b > jamoTBase && b < jamoTBase+jamoTCount {
		return a + b - jamoTBase, true
	}
	r, ok := composites()[[2]rune{a, b}]
	return r, ok
}

// composites maps pairs to primary composites. All of them lie in these ranges (tested).
var composites = sync.OnceValue(func() map[[2]rune]rune {
	m := make(map[[2]rune]rune, 1024)
	for _, part := range [][2]rune{{0xC0, 0x3100}, {0x11000, 0x11A00}} {
		for r := part[0]; r < part[1]; r++ {
			s := string(r)
			d := norm.NFD.PropertiesString(s).Decomposition()
			if d == nil || newer(r) || norm.NFC.String(s) != s {
				continue
			}
			b, n := utf8.DecodeLastRune(d)
			first := norm.NFC.Bytes(d[:len(d)-n])
			if a, size := utf8.DecodeRune(first); size == len(first) {
				m[[2]rune{a, b}] = r
			}
		}
	}
	return m
})

// newer reports whether a character's decomposition or combining class is newer than Unicode 9, so
// that Hugging Face's library treats it as a plain starter.
func newer(r rune) bool {
	if r < 0x7FD {
		return false
	}
	i := sort.Search(len(newerRanges), func(i int) bool { return newerRanges[i][1] >= r })
	return i < len(newerRanges) && newerRanges[i][0] <= r
}

// newerRanges lists those characters. It was made by comparing each character's forms and order
// among marks with Hugging Face's library.
var newerRanges = [][2]rune{
	{0x7fd, 0x7fd}, {0x898, 0x89f}, {0x8ca, 0x8d3}, {0x9fe, 0x9fe}, {0xc3c, 0xc3c}, {0xd3b, 0xd3c}, {0xeba, 0xeba},
	{0x1715, 0x1715}, {0x1abf, 0x1ace}, {0x1df6, 0x1dfa}, {0x32ff, 0x32ff}, {0xa7f2, 0xa7f4}, {0xa82c, 0xa82c},
	{0xab69, 0xab69}, {0x10781, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}, {0x10d24, 0x10d27},
	{0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070},
	{0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11938, 0x11938}, {0x1193d, 0x1193e},
	{0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99},
	{0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1},
	{0x1e030, 0x1e06d}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
	{0x1e4ec, 0x1e4ef}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9},
}
