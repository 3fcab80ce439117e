package spbpe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/chunkcache"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// metaspace is the character by which SentencePiece represents a space.
const metaspace = '\u2581'

const (
	maxPieces  = chunkcache.MaxID
	maxMerges  = noRank - 1
	missing    = uint32(1) << 31 // | rune: the symbol of a character without a piece that never merges
	maxPairLen = 1 << 16         // bytes of the longest piece that may take part in merges
)

// Model is an immutable encoder model, safe for concurrent use.
type Model struct {
	cfg      Config
	merges   pairTable
	runes    runeTable
	tables   chunkcache.Tables
	allBytes bool            // every character without a piece becomes byte tokens
	seeds    func() []uint32 // see findSeeds
	user     userMatcher

	// extra lists the characters of SentencePiece models that merge although they have no piece.
	// Their symbols follow the last id.
	extra []rune

	ascii      [utf8.RuneSelf]uint32                // the symbol of each character
	asciiPairs [utf8.RuneSelf][utf8.RuneSelf]uint32 // the rank of each pair of them

	// asciiEnds[x]: in some merge the left side ends in x and the right side begins with a
	// character beyond ASCII; asciiStarts is the reverse.
	asciiEnds, asciiStarts [128]bool

	maxID    uint32
	resident int64
}

// merge is one entry of the table of merges, as New collects it.
type merge struct {
	left, right uint32
	rank, id    uint32
}

// New checks cfg and prepares the model. It keeps cfg's slices. Errors that wrap ErrUnsupported
// name a feature that this engine lacks; others say what is wrong with the file.
func New(cfg Config) (*Model, error) {
	if len(cfg.Pieces) == 0 || len(cfg.Pieces) > maxPieces {
		return nil, fmt.Errorf("spbpe: %d pieces, want 1 to %d", len(cfg.Pieces), maxPieces)
	}
	if len(cfg.Merges) > maxMerges {
		return nil, fmt.Errorf("spbpe: %d merges, want at most %d", len(cfg.Merges), maxMerges)
	}
	m := &Model{cfg: cfg, maxID: uint32(len(cfg.Pieces) - 1)}
	if err := m.checkFallback(); err != nil {
		return nil, err
	}
	matched := make([][]byte, len(cfg.Pieces))
	for id, p := range cfg.Pieces {
		// The engine's text never contains spaces.
		if len(p) > 0 && !m.noMerge(uint32(id)) && bytes.IndexByte(p, ' ') < 0 {
			matched[id] = p
		}
	}
	ids := vocab.New(matched)
	if first, _, ok := ids.Twice(); ok {
		return nil, fmt.Errorf("spbpe: piece %q occurs twice", cfg.Pieces[first])
	}
	var list []merge
	var err error
	if cfg.Scores != nil {
		list, err = m.mergesOfScores(ids)
	} else {
		list, err = m.mergesOfPairs(ids)
	}
	if err != nil {
		return nil, err
	}
	if !m.merges.build(list) {
		return nil, fmt.Errorf("%w: the merges cannot be hashed", ErrUnsupported)
	}
	m.buildRunes(ids, list)
	m.buildTables(list)
	for c := range m.ascii {
		m.ascii[c], _ = m.symbol([]byte{byte(c)})
	}
	for c, left := range m.ascii {
		for d, right := range m.ascii {
			m.asciiPairs[c][d] = m.merges.Find(left, right)
		}
	}
	if err := m.buildUser(); err != nil {
		return nil, err
	}
	m.seeds = sync.OnceValue(m.findSeeds)
	m.resident = m.measure()
	return m, nil
}

func (m *Model) noMerge(id uint32) bool {
	return m.cfg.NoMerge != nil && int(id) < len(m.cfg.NoMerge) && m.cfg.NoMerge[id]
}

// checkFallback checks how characters without a piece are encoded.
func (m *Model) checkFallback() error {
	cfg := &m.cfg
	if cfg.UnkID >= len(cfg.Pieces) {
		return fmt.Errorf("spbpe: unknown token %d of %d pieces", cfg.UnkID, len(cfg.Pieces))
	}
	if !cfg.ByteFallback {
		for i := range cfg.ByteIDs {
			cfg.ByteIDs[i] = -1
		}
	}
	m.allBytes = true
	for b, id := range cfg.ByteIDs {
		if int(id) >= len(cfg.Pieces) {
			return fmt.Errorf("spbpe: byte %d has token %d of %d pieces", b, id, len(cfg.Pieces))
		}
		// Bytes that never occur in UTF-8 do not matter.
		if id < 0 && b != 0xC0 && b != 0xC1 && b < 0xF5 {
			m.allBytes = false
		}
	}
	if !m.allBytes && cfg.UnkID < 0 {
		return fmt.Errorf("%w: neither an unknown token nor a token for every byte", ErrUnsupported)
	}
	return nil
}

// mergesOfPairs reads tokenizer.json's list of merges.
func (m *Model) mergesOfPairs(ids *vocab.Table) ([]merge, error) {
	cfg := &m.cfg
	inert := make([]bool, len(cfg.Pieces))
	for _, id := range cfg.ByteIDs {
		if id >= 0 {
			inert[id] = true
		}
	}
	if cfg.UnkID >= 0 && !m.allBytes {
		inert[cfg.UnkID] = true
	}
	list := make([]merge, 0, len(cfg.Merges))
	var buf []byte
	for rank, p := range cfg.Merges {
		l, r := p[0], p[1]
		if int(l) >= len(cfg.Pieces) || int(r) >= len(cfg.Pieces) {
			return nil, fmt.Errorf("spbpe: merge %d joins tokens %d and %d of %d pieces", rank, l, r, len(cfg.Pieces))
		}
		if inert[l] || inert[r] {
			return nil, fmt.Errorf("%w: merge %d joins a byte or unknown token", ErrUnsupported, rank)
		}
		if len(cfg.Pieces[l]) == 0 || len(cfg.Pieces[r]) == 0 || len(cfg.Pieces[l])+len(cfg.Pieces[r]) > maxPairLen {
			return nil, fmt.Errorf("spbpe: merge %d: bad length of a piece", rank)
		}
		buf = append(append(buf[:0], cfg.Pieces[l]...), cfg.Pieces[r]...)
		id, ok := ids.ID(buf)
		if !ok {
			if bytes.IndexByte(buf, ' ') >= 0 {
				continue
			}
			return nil, fmt.Errorf("spbpe: merge %d makes %q, which is not a piece", rank, buf)
		}
		list = append(list, merge{l, r, uint32(rank), id})
	}
	return list, nil
}

// mergesOfScores lists every pair of pieces whose concatenation is a piece: SentencePiece merges
// all of them, the best score first. Equal scores have equal ranks.
func (m *Model) mergesOfScores(ids *vocab.Table) ([]merge, error) {
	cfg := &m.cfg
	if len(cfg.Scores) != len(cfg.Pieces) {
		return nil, fmt.Errorf("spbpe: %d scores for %d pieces", len(cfg.Scores), len(cfg.Pieces))
	}
	order, err := m.byScore(ids)
	if err != nil {
		return nil, err
	}
	extra := map[rune]uint32{}
	symbol := func(p []byte) (uint32, bool) {
		if id, ok := ids.ID(p); ok {
			return id, true
		}
		r, n := utf8.DecodeRune(p)
		if n != len(p) || r == utf8.RuneError && n == 1 {
			return 0, false
		}
		sym, ok := extra[r]
		if !ok {
			sym = uint32(len(cfg.Pieces) + len(m.extra))
			extra[r] = sym
			m.extra = append(m.extra, r)
		}
		return sym, true
	}
	list := make([]merge, 0, 2*len(order))
	rank := uint32(0)
	for i, id := range order {
		if i > 0 && cfg.Scores[id] != cfg.Scores[order[i-1]] {
			rank++
		}
		p := cfg.Pieces[id]
		if len(p) > 512 {
			return nil, fmt.Errorf("%w: a piece of %d bytes", ErrUnsupported, len(p))
		}
		for k := 1; k < len(p); k++ {
			if !utf8.RuneStart(p[k]) {
				continue
			}
			l, ok := symbol(p[:k])
			if !ok {
				continue
			}
			r, ok := symbol(p[k:])
			if !ok {
				continue
			}
			if len(list) == maxMerges {
				return nil, fmt.Errorf("%w: more than %d ways to merge", ErrUnsupported, maxMerges)
			}
			list = append(list, merge{l, r, rank, id})
		}
	}
	if len(cfg.Pieces)+len(m.extra) > 1<<symbolBits {
		return nil, fmt.Errorf("%w: more than %d symbols", ErrUnsupported, 1<<symbolBits)
	}
	return list, nil
}

// byScore lists the ids of the pieces, highest score first.
func (m *Model) byScore(ids *vocab.Table) ([]uint32, error) {
	scores := m.cfg.Scores
	order := make([]uint32, 0, ids.Len())
	for id := range uint32(ids.Len()) {
		if _, ok := ids.Token(id); !ok {
			continue
		}
		if s := scores[id]; s != s {
			return nil, fmt.Errorf("spbpe: the score of piece %d is not a number", id)
		}
		order = append(order, id)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return order, nil
}

// text returns a piece as it appears in windows.
func (m *Model) text(id uint32) []byte {
	return bytes.ReplaceAll(m.cfg.Pieces[id], []byte(string(metaspace)), []byte{' '})
}

// findSeeds lists the pieces worth caching before the first text: those that are one chunk and
// encode to themselves.
func (m *Model) findSeeds() []uint32 {
	var seeds []uint32
	e := m.newEncoder(chunkcache.MinBytes)
	for id := range m.cfg.Pieces {
		if len(m.cfg.Pieces[id]) == 0 || m.noMerge(uint32(id)) {
			continue
		}
		p := m.text(uint32(id))
		if len(p) > 16 || bytes.IndexByte(p, 0) >= 0 || !utf8.Valid(p) || !m.oneChunk(p) {
			continue
		}
		if e.ids = e.appendChunk(e.ids[:0], p); len(e.ids) == 1 && e.ids[0] == uint32(id) {
			seeds = append(seeds, uint32(id))
		}
	}
	return seeds
}

// oneChunk reports whether no cut lies inside p.
func (m *Model) oneChunk(p []byte) bool {
	prev := rune(-1)
	for _, r := range string(p) {
		if prev >= 0 && !m.joins(prev, r) {
			return false
		}
		prev = r
	}
	return true
}

func (m *Model) measure() int64 {
	n := int64(len(m.cfg.Pieces))*(24+4) + m.merges.bytes() + m.runes.bytes() + int64(unsafe.Sizeof(m.asciiPairs))
	for _, p := range m.cfg.Pieces {
		n += int64(len(p))
	}
	return n
}

// ResidentBytes returns the memory that the model holds, its vocabulary included.
func (m *Model) ResidentBytes() int64 { return m.resident }

// EncoderBytes returns the memory that an Encoder with that cache holds between calls.
func (m *Model) EncoderBytes(cacheBytes int) int64 {
	return chunkcache.EncoderBytes(cacheBytes, scratchBytes)
}
