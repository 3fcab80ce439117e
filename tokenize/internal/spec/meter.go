package spec

import (
	"fmt"
	"math"

	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// The memory that loading takes besides the file, in bytes. Measured as the peak for files with
// 100,000 and 400,000 tokens, and rounded up.
const (
	ListedTokenBytes = 32  // per token of a vocab.Table while it is built
	byteBPETokens    = 40  // per token of the byte-level engine
	spbpeTokens      = 160 // per token of the SentencePiece BPE engine
	trieTokens       = 70  // per token in the tries of the Unigram and WordPiece engines
	trieBytes        = 24  // per byte of a token beyond trieShort
	trieShort        = 6
	plainTokens      = 24
	mergeBytes       = 30 // per merge in any engine
	AddedTokenBytes  = 420
	AddedNodeBytes   = 44 // per node of the trie of added tokens
	PieceBytes       = 160
	RankLineBytes    = 96
)

// A Meter counts the memory that loading takes at once, the part that depends on the file, against
// a limit. A nil Meter counts nothing.
type Meter struct{ limit, used int64 }

// NewMeter returns a Meter with a limit in bytes; 0 means no limit.
func NewMeter(limit int64) *Meter { return &Meter{limit: limit} }

// Left returns how many bytes may still be taken.
func (m *Meter) Left() int64 {
	if m == nil || m.limit <= 0 {
		return math.MaxInt64
	}
	return m.limit - m.used
}

// Take counts n bytes before they are allocated. what names the part of the file that needs them;
// the error wraps ErrMemory.
func (m *Meter) Take(n int64, what string) error {
	if n > m.Left() {
		return LimitError(what, m.used+n, m.limit)
	}
	if m != nil {
		m.used += n
	}
	return nil
}

// Free returns n bytes that Take counted.
func (m *Meter) Free(n int64) {
	if m != nil {
		m.used -= n
	}
}

// LimitError returns an error that wraps ErrMemory: with the named part, loading takes need bytes
// and limit bytes are left.
func LimitError(what string, need, limit int64) error {
	return fmt.Errorf("%w: with %s, loading takes at least %d MiB of memory and %d MiB are left for it", ErrMemory,
		what, (need+1<<20-1)>>20, limit>>20)
}

// EngineBytes estimates the memory of the tables of a model's engine, without its vocab.Table.
func EngineBytes(m Model) int64 {
	switch m := m.(type) {
	case *BPE:
		perToken := int64(byteBPETokens)
		if m.ByteFallback {
			perToken = spbpeTokens
		}
		return mergeBytes*int64(len(m.Merges)) + flatBytes(m.Vocab, perToken)
	case *Ranks:
		return flatBytes(m.Vocab, byteBPETokens+mergeBytes)
	case *Unigram, *WordPiece:
		return trieTableBytes(m.Table())
	case *SentencePiece:
		if m.Unigram {
			return trieTableBytes(m.Vocab)
		}
		return flatBytes(m.Vocab, spbpeTokens)
	}
	return flatBytes(m.Table(), plainTokens)
}

func flatBytes(t *vocab.Table, perToken int64) int64 {
	return int64(t.Len())*perToken + 2*t.TextBytes()
}

func trieTableBytes(t *vocab.Table) int64 {
	n := int64(t.Len()) * trieTokens
	for id := range uint32(t.Len()) {
		if text, _ := t.Token(id); len(text) > trieShort {
			n += trieBytes * int64(len(text)-trieShort)
		}
	}
	return n
}
