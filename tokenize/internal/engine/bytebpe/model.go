package bytebpe

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/pairhash"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// Model is an immutable vocabulary with its merges. It may be shared by any number of goroutines;
// each makes its own Encoder.
type Model struct {
	split        Split
	ranked       bool
	ignoreMerges bool   // so with ranked
	classes      []byte // a table for code points: page numbers, 16 bits each, then pages of 128

	byteID    [256]uint32 // token of each byte, or noSymbol
	missing   bool        // some byte has no token; such bytes are dropped before merging
	bytePairs []uint32    // rank of each pair of bytes, at left<<8 | right
	pairs     pairhash.Table
	ascii     [128]uint8 // classes
	results   []uint32   // rank to token; nil if that is the rank plus base
	base      uint32
	tables    mergeTables
	vocab     *vocab.Table

	joined   func() *joinedBytes
	places   atomic.Int64    // in long words, as far as joinedFor counts them
	seeds    func() []uint64 // ids whose bytes merge to themselves, as a bit set
	unmerged func() uint64   // lengths of tokens that merges may not make; see findUnmerged
}

// mergeTables is what a merging kernel reads; its layout is known to the assembly.
type mergeTables struct {
	byteID    *uint32
	bytePairs *uint32
	disp      *uint16
	slots     *uint64
	results   *uint32 // nil: rank + base
	mul       uint64
	bshift    uint32
	sshift    uint32
	base      uint32
}

const classPages = 2 * (0x110000 >> 7)

// classTable is Onig's table, shared by all models.
var classTable = sync.OnceValue(func() []byte { return append(charclass.AppendOnig(nil), make([]byte, kernelPad)...) })

const kernelPad = 3 // a kernel reads classes four bytes at a time

func (m *Model) class(c rune) uint8 {
	page := int(binary.LittleEndian.Uint16(m.classes[c>>7*2:]))
	return m.classes[classPages+page<<7+int(c&127)]
}

// New checks the configuration and builds the tables.
func New(c Config) (*Model, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	m := &Model{split: c.Split, ranked: c.Ranked, ignoreMerges: c.IgnoreMerges || c.Ranked, classes: classTable()}
	for b := range m.byteID {
		m.byteID[b] = noSymbol
	}
	for b := range m.ascii {
		m.ascii[b] = m.class(rune(b))
	}
	m.vocab = c.Vocab
	for id := range uint32(m.vocab.Len()) {
		if t, _ := m.vocab.Token(id); len(t) == 1 && m.byteID[t[0]] == noSymbol {
			m.byteID[t[0]] = id
		}
	}
	m.missing = slices.Contains(m.byteID[:], noSymbol)
	m.bytePairs = make([]uint32, 1<<16)
	for i := range m.bytePairs {
		m.bytePairs[i] = noRank
	}
	if err := m.setPairs(&c); err != nil {
		return nil, err
	}
	m.tables = mergeTables{byteID: &m.byteID[0], bytePairs: &m.bytePairs[0], disp: &m.pairs.Disp[0],
		slots: &m.pairs.Slots[0],
		mul:   m.pairs.Mul, bshift: uint32(m.pairs.BucketShift), sshift: uint32(m.pairs.SlotShift), base: m.base}
	if m.results != nil {
		m.tables.results = &m.results[0]
	}
	m.seeds, m.unmerged = sync.OnceValue(m.findSeeds), sync.OnceValue(m.findUnmerged)
	m.joined = sync.OnceValue(m.findJoined)
	return m, nil
}

// setPairs builds the tables of merges.
func (m *Model) setPairs(c *Config) error {
	if c.Ranked && c.Pairs != nil {
		m.pairs = *c.Pairs
		for id := range uint32(m.vocab.Len()) {
			if t, _ := m.vocab.Token(id); len(t) == 2 {
				l, r := m.byteID[t[0]], m.byteID[t[1]]
				m.bytePairs[uint32(t[0])<<8|uint32(t[1])] = m.pairs.Find(l, r)
			}
		}
		return nil
	}
	var pairs []uint64
	if c.Ranked {
		pairs = m.derivePairs().entries()
	} else {
		pairs = make([]uint64, len(c.Merges))
		for r, g := range c.Merges {
			pairs[r] = pairhash.Key(g.Left, g.Right)<<24 | uint64(r)
			m.setBytePair(g.Left, g.Right, uint32(r))
		}
		m.setResults(c.Merges)
	}
	var ok bool
	if m.pairs, ok = pairhash.New(pairs); !ok {
		return configError("the merges cannot be hashed")
	}
	return nil
}

// derivePairs finds, for ranked tokens, the one pair that can merge into each token.
//
// When the parts of a token are about to merge in a text, no merge has crossed the token's ends, so
// the merges inside were those of the token's bytes alone. So the last two parts of that run are
// the only pair that ever merges into it. Parts are shorter than the whole, so tokens are taken by
// length; tokens that merges never produce are reachable only as whole pre-tokens.
func (m *Model) derivePairs() *pairSet {
	longest, n := 0, uint32(m.vocab.Len())
	for id := range n {
		t, _ := m.vocab.Token(id)
		longest = max(longest, len(t))
	}
	count := make([]uint32, longest+2)
	for id := range n {
		t, _ := m.vocab.Token(id)
		count[len(t)+1]++
	}
	for i := 1; i < len(count); i++ {
		count[i] += count[i-1]
	}
	order := make([]uint32, n)
	for id := range n {
		t, _ := m.vocab.Token(id)
		order[count[len(t)]] = id
		count[len(t)]++
	}
	set := &pairSet{slots: make([]uint64, 1<<bits.Len(uint(2*n+16)))}
	var s slowMerger
	for _, id := range order {
		t, _ := m.vocab.Token(id)
		if len(t) < 2 || len(t) > longestDerived {
			continue
		}
		if l, r, ok := s.lastPair(m, t, set); ok {
			set.put(l, r, id)
			m.setBytePair(l, r, id)
		}
	}
	return set
}

// longestDerived bounds the quadratic work on a token of an untrusted file. A longer token is
// reached only as a whole pre-token. Known vocabularies have none: their longest tokens are 128
// bytes.
const longestDerived = 1 << 10

func (m *Model) setBytePair(l, r, rank uint32) {
	a, _ := m.vocab.Token(l)
	b, _ := m.vocab.Token(r)
	if len(a) == 1 && len(b) == 1 && m.byteID[a[0]] == l && m.byteID[b[0]] == r {
		m.bytePairs[uint32(a[0])<<8|uint32(b[0])] = rank
	}
}

// slowMerger merges with the tables under construction, whose ranks are token ids.
type slowMerger struct{ sym, ranks []uint32 }

// lastPair returns the two tokens that w merges to; ok is false if it merges to one or to more than
// two.
func (s *slowMerger) lastPair(m *Model, w []byte, set *pairSet) (l, r uint32, ok bool) {
	sym, ranks := s.sym[:0], s.ranks[:0]
	for i, c := range w {
		if m.byteID[c] == noSymbol {
			return 0, 0, false
		}
		sym = append(sym, m.byteID[c])
		if i > 0 {
			ranks = append(ranks, m.bytePairs[uint32(w[i-1])<<8|uint32(c)])
		}
	}
	s.sym, s.ranks = sym, ranks
	for len(ranks) > 1 {
		best, at := uint32(noRank), 0
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if best == noRank {
			return 0, 0, false
		}
		sym[at] = best
		for i := at + 1; i < len(ranks); i++ { // most tokens are short: calling copy would take longer
			sym[i], ranks[i-1] = sym[i+1], ranks[i]
		}
		sym, ranks = sym[:len(ranks)], ranks[:len(ranks)-1]
		if at < len(ranks) {
			ranks[at] = set.find(best, sym[at+1])
		}
		if at > 0 {
			ranks[at-1] = set.find(sym[at-1], best)
		}
	}
	return sym[0], sym[1], len(sym) == 2
}

// setResults keeps the results of merges, unless they are consecutive ids.
func (m *Model) setResults(merges []Merge) {
	if len(merges) == 0 {
		return
	}
	m.base = merges[0].Result
	for r, g := range merges {
		if g.Result != m.base+uint32(r) {
			m.base, m.results = 0, make([]uint32, len(merges))
			break
		}
	}
	for r := range m.results {
		m.results[r] = merges[r].Result
	}
}

// result returns the token that the pair of this rank merges to.
func (m *Model) result(rank uint32) uint32 {
	if m.results == nil {
		return rank + m.base
	}
	return m.results[rank]
}

// anyLength is a set of all lengths.
const anyLength = ^uint64(0)

// lengthBit returns the bit of a length in a set of lengths; the last one stands for all longer ones.
func lengthBit(n int) uint64 { return 1 << min(n, 63) }

// findUnmerged returns the lengths of the tokens that merges do not make of their own bytes, or may
// not: a word of another length need not be looked up, since merges find its token too. A ranked
// token is made by merges exactly if it has a pair (see derivePairs).
func (m *Model) findUnmerged() (lengths uint64) {
	if _, _, twice := m.vocab.Twice(); !m.ranked || twice || m.missing {
		return anyLength
	}
	made := make([]uint64, m.vocab.Len()/64+1)
	for _, slot := range m.pairs.Slots {
		if id := uint32(slot) & noRank; int(id) < m.vocab.Len() {
			made[id>>6] |= 1 << (id & 63)
		}
	}
	for id := range uint32(m.vocab.Len()) {
		if t, _ := m.vocab.Token(id); len(t) > 1 && made[id>>6]>>(id&63)&1 == 0 {
			lengths |= lengthBit(len(t))
		}
	}
	return lengths
}

// findSeeds lists the tokens of at most 16 bytes without NUL whose bytes encode to themselves.
func (m *Model) findSeeds() []uint64 {
	set := make([]uint64, m.vocab.Len()/64+1)
	g := merger{m: m}
	var jobs mergeJobs
	var ids [mergeWidth]uint32
	buf := make([]byte, mergeWidth*16)
	n := 0
	merge := func() {
		g.mergeSome(buf, &jobs, n, &g.results)
		for i, id := range ids[:n] {
			if g.results.count[i] == 1 && g.results.ids[i][0] == id {
				set[id>>6] |= 1 << (id & 63)
			}
		}
		n = 0
	}
	for id := range uint32(m.vocab.Len()) {
		t, _ := m.vocab.Token(id)
		if len(t) == 0 || len(t) > 16 || bytes.IndexByte(t, 0) >= 0 {
			continue
		}
		if m.ignoreMerges {
			set[id>>6] |= 1 << (id & 63)
			continue
		}
		if m.hasMissing(t) {
			continue
		}
		copy(buf[16*n:], t)
		jobs[n].begin, jobs[n].length = uint32(16*n), uint32(len(t))
		ids[n] = id
		if n++; n == len(jobs) {
			merge()
		}
	}
	if n > 0 {
		merge()
	}
	return set
}

func (m *Model) hasMissing(w []byte) bool {
	if !m.missing {
		return false
	}
	return slices.ContainsFunc(w, func(c byte) bool { return m.byteID[c] == noSymbol })
}

// Pairs returns the rank of every pair of tokens that merges. The caller must not change it.
func (m *Model) Pairs() *pairhash.Table { return &m.pairs }

// ResidentBytes returns the memory of the model, which all encoders share. The vocabulary of ranks
// is not in it: it is the tokenizer's own.
func (m *Model) ResidentBytes() int64 {
	n := int64(len(m.bytePairs)*4+len(m.results)*4+m.vocab.Len()/8+len(m.classes)) + m.pairs.Bytes() +
		int64(unsafe.Sizeof(joinedBytes{}))
	if !m.ranked {
		n += m.vocab.Bytes()
	}
	return n
}
