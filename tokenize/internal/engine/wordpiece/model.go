package wordpiece

import (
	"bytes"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/bytetrie"
	"github.com/dsload/dsload/tokenize/internal/chunkcache"
)

// Model is an immutable encoder model, safe for concurrent use.
type Model struct {
	cfg    Config
	chars  *charTable // raw characters: normalizer and pre-tokenizer
	split  *charTable // normalized characters: pre-tokenizer only
	tables chunkcache.Tables

	dropsNUL, dropsReplacement bool // the normalizer drops them; see fill

	first, rest *bytetrie.Trie // pieces at the beginning of a word, and inside it (without the prefix)

	seeds    func() []uint32 // see findSeeds
	resident int64
}

// New checks cfg and prepares the model. It keeps cfg's slices. Errors say what is wrong with the
// file.
func New(cfg Config) (*Model, error) {
	n := len(cfg.Pieces)
	switch {
	case n == 0 || n > chunkcache.MaxID:
		return nil, fmt.Errorf("wordpiece: %d pieces, want 1 to %d", n, chunkcache.MaxID)
	case int(cfg.UnkID) >= n:
		return nil, fmt.Errorf("wordpiece: unknown token %d of %d pieces", cfg.UnkID, n)
	case cfg.MaxInputCharsPerWord < 0:
		return nil, fmt.Errorf("wordpiece: invalid limit of %d characters per word", cfg.MaxInputCharsPerWord)
	}
	m := &Model{cfg: cfg, chars: cfg.Normalizer.table(true), split: Normalizer{}.table(true)}
	var firsts, rests [][]byte
	var firstIDs, restIDs []uint32
	for id, p := range cfg.Pieces {
		if len(p) == 0 {
			continue
		}
		firsts, firstIDs = append(firsts, p), append(firstIDs, uint32(id))
		if r, ok := bytes.CutPrefix(p, cfg.Prefix); ok && len(r) > 0 {
			rests, restIDs = append(rests, r), append(restIDs, uint32(id))
		}
	}
	var err error
	if m.first, err = bytetrie.New(firsts, firstIDs); err != nil {
		return nil, err
	}
	if m.rest, err = bytetrie.New(rests, restIDs); err != nil {
		return nil, err
	}
	for c := range utf8.RuneSelf {
		switch m.chars.get(rune(c)) & kindBits {
		case kindSpace:
			m.tables.To[c] = 0x80
		case kindAlone:
		default:
			m.tables.From[c], m.tables.To[c] = 1, 1
		}
	}
	dropped := func(r rune) bool { return m.chars.get(r)&kindBits == kindDrop }
	m.dropsNUL, m.dropsReplacement = dropped(0) && dropped(1), dropped(utf8.RuneError)
	m.seeds = sync.OnceValue(m.findSeeds)
	m.resident = m.first.Bytes() + m.rest.Bytes() + int64(n)*(24+4) +
		int64(len(m.chars.pages)+len(m.split.pages))*1024
	for _, p := range cfg.Pieces {
		m.resident += int64(len(p))
	}
	return m, nil
}

// findSeeds lists the pieces worth caching before the first text: chunks of ASCII that encode to
// themselves.
func (m *Model) findSeeds() []uint32 {
	var seeds []uint32
	e := m.newEncoder(chunkcache.MinBytes)
	for id, p := range m.cfg.Pieces {
		if len(p) == 0 || len(p) > 16 || !m.isChunk(p) {
			continue
		}
		if e.ids = e.appendChunk(e.ids[:0], p); len(e.ids) == 1 && e.ids[0] == uint32(id) {
			seeds = append(seeds, uint32(id))
		}
	}
	return seeds
}

// isChunk reports whether p is ASCII without NUL that the scanner does not cut and lowering does
// not change.
func (m *Model) isChunk(p []byte) bool {
	for i, b := range p {
		switch {
		case b == 0 || b >= utf8.RuneSelf || m.tables.To[b] == 0x80:
			return false
		case m.cfg.Normalizer.Lowercase && b >= 'A' && b <= 'Z':
			return false
		case i > 0 && m.tables.From[p[i-1]]&m.tables.To[b] == 0:
			return false
		}
	}
	return true
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
// are those of text[:n] and those of the rest. It cuts next to ASCII white space or punctuation. It
// returns 0 if there is no such n in the last 64 KiB.
func (m *Model) SafeCut(text []byte) int {
	for i := len(text); i > 0 && i > len(text)-maxLookBack; i-- {
		if b := text[i-1]; b < utf8.RuneSelf && m.tables.From[b] == 0 {
			return i
		}
		if i == len(text) {
			continue
		}
		if b := text[i]; b < utf8.RuneSelf && m.tables.To[b]&lowerSeven == 0 {
			return i
		}
	}
	return 0
}

const lowerSeven = 0x7F
