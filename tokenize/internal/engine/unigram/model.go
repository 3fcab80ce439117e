package unigram

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/bytetrie"
	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/chunkcache"
)

const (
	metaspace = "\u2581"
	// unkPenalty is how much worse an unknown character scores than the worst piece.
	unkPenalty = 10
)

// Model is an immutable encoder model, safe for concurrent use.
type Model struct {
	cfg      Config
	trie     *bytetrie.Trie
	unkScore float64
	tables   chunkcache.Tables

	// gap[c] says that ASCII character c separates words; joins[c] says that marks after it belong
	// to its cluster.
	gap, joins [128]bool
	// plain[c] says that normalization does not change ASCII character c among ASCII neighbours.
	plain [256]bool

	seeds    func() []uint32 // see findSeeds
	resident int64
	maxScore float64
	longest  int    // bytes of the longest piece or unknown character
	inside   bool   // words are cut inside
	isUser   []bool // SentencePiece's user-defined symbols
}

// New checks cfg and prepares the model. It keeps cfg's slices. Errors that wrap ErrUnsupported
// name a feature that this engine lacks; others say what is wrong with the file.
func New(cfg Config) (*Model, error) {
	n := len(cfg.Pieces)
	switch {
	case n == 0 || n > chunkcache.MaxID:
		return nil, fmt.Errorf("unigram: %d pieces, want 1 to %d", n, chunkcache.MaxID)
	case len(cfg.Scores) != n:
		return nil, fmt.Errorf("unigram: %d scores for %d pieces", len(cfg.Scores), n)
	case cfg.UnkID >= n:
		return nil, fmt.Errorf("unigram: unknown piece %d of %d", cfg.UnkID, n)
	case cfg.Split > SplitNone:
		return nil, fmt.Errorf("unigram: split %d", cfg.Split)
	case cfg.Split != SplitNone && (cfg.NoMatch != nil || cfg.UserDefined != nil):
		return nil, fmt.Errorf("unigram: NoMatch and UserDefined need SplitNone")
	}
	m := &Model{cfg: cfg, longest: utf8.UTFMax}
	if err := m.checkPieces(); err != nil {
		return nil, err
	}
	keys, values := make([][]byte, 0, n), make([]uint32, 0, n)
	for id, p := range cfg.Pieces {
		m.longest = max(m.longest, len(p))
		if len(p) > 0 && !m.noMatch(id) {
			keys, values = append(keys, p), append(values, uint32(id))
		}
	}
	var err error
	if m.trie, err = bytetrie.New(keys, values); err != nil {
		return nil, err
	}
	if cfg.Split != SplitNone {
		if err := m.checkSeparators(); err != nil {
			return nil, err
		}
		m.buildInside()
	}
	m.seeds = sync.OnceValue(m.findSeeds)
	m.resident = m.trie.Bytes() + int64(n)*(24+8+4)
	for _, p := range cfg.Pieces {
		m.resident += int64(len(p))
	}
	if cfg.Charsmap != nil {
		m.resident += cfg.Charsmap.Bytes()
	}
	return m, nil
}

func (m *Model) noMatch(id int) bool { return id < len(m.cfg.NoMatch) && m.cfg.NoMatch[id] }

func (m *Model) checkPieces() error {
	cfg := &m.cfg
	lowest := math.Inf(1)
	if cfg.Split == SplitNone {
		lowest = math.MaxFloat32 // what SentencePiece begins with
	}
	for id, s := range cfg.Scores {
		if s != s {
			return fmt.Errorf("unigram: the score of piece %d is not a number", id)
		}
		if cfg.Split == SplitNone && (m.noMatch(id) || slices.Contains(cfg.UserDefined, uint32(id))) {
			continue
		}
		lowest, m.maxScore = min(lowest, s), max(m.maxScore, s)
	}
	m.unkScore = lowest - unkPenalty
	if !cfg.ByteFallback {
		for b := range cfg.ByteIDs {
			cfg.ByteIDs[b] = -1
		}
	}
	for b, id := range cfg.ByteIDs {
		if int(id) >= len(cfg.Pieces) {
			return fmt.Errorf("unigram: byte %d has piece %d of %d", b, id, len(cfg.Pieces))
		}
	}
	if len(cfg.UserDefined) > 0 {
		m.isUser = make([]bool, len(cfg.Pieces))
	}
	for _, id := range cfg.UserDefined {
		if int(id) >= len(cfg.Pieces) || len(cfg.Pieces[id]) == 0 {
			return fmt.Errorf("unigram: user-defined symbol %d of %d pieces", id, len(cfg.Pieces))
		}
		m.isUser[id] = true
	}
	return nil
}

// checkSeparators finds the separators and makes sure that no entry of the character map spans one.
func (m *Model) checkSeparators() error {
	cfg := &m.cfg
	cm := cfg.Charsmap
	for c := range 128 {
		ch := []byte{byte(c)}
		norm := m.normalize(ch, false)
		m.plain[c] = bytes.Equal(norm, ch) && c != ' '
		switch c {
		case ' ', '\t', '\n', '\v', '\f', '\r':
			if cfg.Split == SplitWords {
				m.gap[c] = len(norm) == 1 && unicode.IsSpace(rune(norm[0]))
			} else {
				m.gap[c] = string(norm) == " " && (c == ' ' || cfg.CollapseSpaces)
			}
		}
		m.joins[c] = c == ' ' || cfg.Nmt && charclass.Nmt(rune(c)) == ' '
		if cm != nil && m.gap[c] && (cm.BeginsWith(ch) || cfg.Nmt && cm.BeginsWith([]byte{' '})) {
			return fmt.Errorf("%w: the character map has entries that begin with white space", ErrUnsupported)
		}
	}
	if !m.gap[' '] {
		return fmt.Errorf("%w: the character map changes spaces", ErrUnsupported)
	}
	if cm != nil {
		for _, r := range graphemePrepends() {
			key := []byte(string(r))
			if _, ok := cm.Replacement(key); ok || cm.BeginsWith(key) {
				return fmt.Errorf("%w: the character map has entries that begin with %U", ErrUnsupported, r)
			}
		}
	}
	if cfg.StripRight && m.spaceBegins() {
		return fmt.Errorf("%w: StripRight without CollapseSpaces", ErrUnsupported)
	}
	for c := range 128 {
		m.tables.From[c], m.tables.To[c] = 1, 1
		if m.gap[c] {
			if m.spaceBegins() {
				m.tables.To[c] = 0
			} else {
				m.tables.To[c] |= 0x80
			}
		}
	}
	return nil
}

// graphemePrepends are the characters that join what follows them.
var graphemePrepends = sync.OnceValue(func() []rune {
	var list []rune
	for r := rune(0x600); r < 0x12000; r++ {
		if charclass.GraphemeOf(r) == charclass.GraphemePrepend {
			list = append(list, r)
		}
	}
	return list
})

// normalize returns the normalized text; joined is as in charsmap.Map.AppendClusters.
func (m *Model) normalize(text []byte, joined bool) []byte {
	e := Encoder{m: m}
	e.setNorm(text, joined)
	return e.norm
}

// findSeeds lists the pieces worth caching before the first text: whole chunks that encode to
// themselves.
func (m *Model) findSeeds() []uint32 {
	if m.cfg.Split == SplitNone {
		return nil
	}
	var seeds []uint32
	e := m.newEncoder(chunkcache.MinBytes)
	for id := range m.cfg.Pieces {
		chunk := m.seedChunk(uint32(id))
		if len(chunk) == 0 || len(chunk) > 16 {
			continue
		}
		e.nearTie = false
		if m.gap[chunk[0]] {
			e.ids = e.appendPlain(e.ids[:0], chunk[1:])
			e.nearTie = false
		} else if m.inside {
			e.ids = e.AppendWord(e.ids[:0], chunk)
		} else {
			e.ids = e.appendPlain(e.ids[:0], chunk)
		}
		if len(e.ids) == 1 && e.ids[0] == uint32(id) && !(m.inside && e.nearTie) {
			seeds = append(seeds, uint32(id))
		}
	}
	return seeds
}

// seedChunk returns the chunk of raw text that a piece stands for, nil if that is not plain ASCII
// or not a chunk.
func (m *Model) seedChunk(id uint32) []byte {
	word, begins := bytes.CutPrefix(m.cfg.Pieces[id], []byte(metaspace))
	if len(word) == 0 || !begins && !m.inside {
		return nil
	}
	for i, b := range word {
		if b == 0 || !m.plain[b] || i > 0 && m.tables.From[word[i-1]]&m.tables.To[b] == 0 {
			return nil
		}
	}
	if begins && (m.inside || m.spaceBegins()) {
		return append([]byte{' '}, word...)
	}
	return word
}

// ResidentBytes returns the memory that the model holds, its vocabulary included.
func (m *Model) ResidentBytes() int64 { return m.resident }

// EncoderBytes returns the memory that an Encoder with that cache holds between calls.
func (m *Model) EncoderBytes(cacheBytes int) int64 {
	return chunkcache.EncoderBytes(cacheBytes, scratchBytes)
}

// maxLookBack bounds how far back SafeCut looks.
const maxLookBack = 64 << 10

// SafeCut returns the largest n at which text can be cut: whatever follows, the ids of the whole
// are those of text[:n] and those of the rest. It cuts before white space. It returns 0 if there is
// no such n in the last 64 KiB, and always for SplitNone.
func (m *Model) SafeCut(text []byte) int {
	if m.cfg.Split == SplitNone {
		return 0
	}
	for i := len(text) - 1; i > 0 && i > len(text)-maxLookBack; i-- {
		if m.isGap(text[i]) && m.stripStops(text[:i]) {
			return i
		}
	}
	return 0
}

// stripStops reports whether StripRight would leave the last word of text alone if only white space
// followed.
func (m *Model) stripStops(text []byte) bool {
	if !m.cfg.StripRight || m.cfg.Split != SplitMetaspace {
		return true
	}
	begin, end := m.lastWord(text, maxLookBack)
	if end == 0 {
		return false
	}
	if b := text[end-1]; b > ' ' && b < utf8.RuneSelf {
		return m.plain[b]
	}
	norm := m.normalize(text[begin:end], begin > 0 && m.joins[text[begin-1]&127])
	r, _ := utf8.DecodeLastRune(norm)
	return len(norm) > 0 && !unicode.IsSpace(r)
}

// lastWord returns where the last word of text begins, at most limit bytes before its end, and where it
// ends, before separators.
func (m *Model) lastWord(text []byte, limit int) (begin, end int) {
	for end = len(text); end > 0 && m.isGap(text[end-1]); end-- {
	}
	for begin = end; begin > 0 && end-begin < limit && !m.isGap(text[begin-1]); begin-- {
	}
	return begin, end
}
