// Package added finds added tokens in text as Hugging Face does: leftmost first, longest of those,
// without overlap; then single_word, lstrip and rstrip are applied to each match.
package added

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// Token is an added token as it is searched for.
type Token struct {
	Content    []byte
	ID         uint32
	SingleWord bool // only where no word character is next to it
	LStrip     bool // takes the white space before it
	RStrip     bool // takes the white space after it
}

// Equal reports whether two tokens are the same.
func (t Token) Equal(o Token) bool {
	return bytes.Equal(t.Content, o.Content) && t.ID == o.ID && t.SingleWord == o.SingleWord && t.LStrip == o.LStrip &&
		t.RStrip == o.RStrip
}

// Match is a token's span in a text, including the white space it takes.
type Match struct {
	Start, End int
	ID         uint32
}

// ErrTokens reports that tokens cannot be searched for together.
var ErrTokens = errors.New("invalid added tokens")

// Matcher searches for a set of tokens. It is immutable. A nil Matcher finds nothing.
type Matcher struct {
	tokens []Token
	// The trie: edges hashed by node and byte; leaf[node] is the index of the token that ends
	// there, plus one.
	edges                  map[uint64]uint32
	leaf                   []uint32
	root                   [256]uint32
	prefix                 []byte // all tokens begin with it
	longest                int
	single, lstrip, rstrip bool
}

// New returns a Matcher, nil for no tokens.
func New(tokens []Token) (*Matcher, error) {
	if len(tokens) == 0 {
		return nil, nil
	}
	nodes := Nodes(tokens)
	m := &Matcher{tokens: tokens, edges: make(map[uint64]uint32, nodes), leaf: append(make([]uint32, 0, nodes), 0)}
	for i, t := range tokens {
		if len(t.Content) == 0 {
			return nil, fmt.Errorf("%w: token %d is empty", ErrTokens, t.ID)
		}
		m.longest = max(m.longest, len(t.Content))
		m.single = m.single || t.SingleWord
		m.lstrip = m.lstrip || t.LStrip
		m.rstrip = m.rstrip || t.RStrip
		node := uint32(0)
		for j, c := range t.Content {
			next, ok := m.edges[uint64(node)<<8|uint64(c)]
			if !ok {
				next = uint32(len(m.leaf))
				m.edges[uint64(node)<<8|uint64(c)] = next
				m.leaf = append(m.leaf, 0)
				if j == 0 {
					m.root[c] = next
				}
			}
			node = next
		}
		if m.leaf[node] != 0 {
			return nil, fmt.Errorf("%w: tokens %d and %d are both %q", ErrTokens, tokens[m.leaf[node]-1].ID, t.ID,
				t.Content)
		}
		m.leaf[node] = uint32(i) + 1
		if i == 0 {
			m.prefix = t.Content
		}
		m.prefix = m.prefix[:sharedBytes(m.prefix, t.Content)]
	}
	return m, nil
}

// sharedBytes returns how many bytes a and b begin with alike.
func sharedBytes(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Bytes estimates the memory of the search structure.
func (m *Matcher) Bytes() int64 {
	if m == nil {
		return 0
	}
	n := int64(len(m.leaf))*nodeBytes + 2048
	for i := range m.tokens {
		n += tokenBytes + int64(len(m.tokens[i].Content))
	}
	return n
}

// Tokens returns the tokens. The caller must not change them.
func (m *Matcher) Tokens() []Token {
	if m == nil {
		return nil
	}
	return m.tokens
}

// Strips reports whether a token may take white space next to it.
func (m *Matcher) Strips() bool { return m.lstrip || m.rstrip }

const (
	nodeBytes  = 44 // an entry of the edge map at its lowest load, and a leaf
	tokenBytes = 56
)

// Nodes returns the number of nodes of a Matcher for the tokens.
func Nodes(tokens []Token) int {
	order := make([]uint32, len(tokens))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(tokens[a].Content, tokens[b].Content) })
	n := 1
	var last []byte
	for _, i := range order {
		content := tokens[i].Content
		n += len(content) - sharedBytes(last, content)
		last = content
	}
	return n
}

// next returns the next position at or after i where a token may begin, or len(text).
func (m *Matcher) next(text []byte, i int) int {
	if len(m.prefix) > 0 {
		if j := bytes.Index(text[i:], m.prefix); j >= 0 {
			return i + j
		}
		return len(text)
	}
	for i < len(text) && m.root[text[i]] == 0 {
		i++
	}
	return i
}

// at returns the longest token at a position.
func (m *Matcher) at(text []byte, i int) (token *Token, end int) {
	node := m.root[text[i]]
	for j := i + 1; node != 0; j++ {
		if k := m.leaf[node]; k != 0 {
			token, end = &m.tokens[k-1], j
		}
		if j == len(text) {
			break
		}
		node = m.edges[uint64(node)<<8|uint64(text[j])]
	}
	return token, end
}

// Append appends the matches in text to dst. A match may begin before the end of the previous one,
// if that took white space in which this one begins.
func (m *Matcher) Append(dst []Match, text []byte) []Match {
	if m == nil {
		return dst
	}
	done := 0 // end of the last match with its white space
	for i := m.next(text, 0); i < len(text); i = m.next(text, i) {
		t, stop := m.at(text, i)
		if t == nil {
			i++
			continue
		}
		start := i
		i = stop
		if t.SingleWord && (wordEnds(text[:start]) || wordBegins(text[stop:])) {
			continue
		}
		if t.LStrip {
			start = max(len(bytes.TrimRightFunc(text[:start], isSpace)), done)
		}
		if t.RStrip {
			stop = len(text) - len(bytes.TrimLeftFunc(text[stop:], isSpace))
		}
		if start >= stop { // the previous match took all of it
			continue
		}
		dst = append(dst, Match{start, stop, t.ID})
		done = stop
	}
	return dst
}

func wordEnds(text []byte) bool {
	r, n := utf8.DecodeLastRune(text)
	return n > 0 && charclass.Is(r, charclass.Word)
}

func wordBegins(text []byte) bool {
	r, n := utf8.DecodeRune(text)
	return n > 0 && charclass.Is(r, charclass.Word)
}

func isSpace(r rune) bool { return charclass.Is(r, charclass.Whitespace) }

// Cuttable reports whether text may be cut at n, however it continues: no match spans the cut, and
// no match on one side depends on the other.
func (m *Matcher) Cuttable(text []byte, n int) bool {
	if m == nil {
		return true
	}
	before, size := utf8.DecodeLastRune(text[:n])
	if isSpace(before) && m.mayBegin(text[n:]) {
		return false // the segment may end here, with white space, which some engines treat specially
	}
	if m.lstrip && (size == 0 || isSpace(before)) || m.single && (size == 0 || charclass.Is(before, charclass.Word)) {
		return false
	}
	for i := max(0, n-m.longest); i < n; i++ {
		node := m.root[text[i]]
		for j := i + 1; node != 0 && j < n; j++ {
			node = m.edges[uint64(node)<<8|uint64(text[j])]
		}
		if node != 0 {
			// text[i:n] is a token or begins one. A new segment begins after a token, which a cut
			// would hide.
			return false
		}
	}
	// An rstrip token must not take white space up to the cut.
	return !m.rstrip || !isSpace(before)
}

// mayBegin reports whether a match may begin at the start of text, however text continues.
func (m *Matcher) mayBegin(text []byte) bool {
	if r, _ := utf8.DecodeRune(text); len(text) == 0 || m.lstrip && isSpace(r) {
		return true
	}
	node := m.root[text[0]]
	for i := 1; node != 0; i++ {
		if i == len(text) || m.leaf[node] != 0 {
			return true
		}
		node = m.edges[uint64(node)<<8|uint64(text[i])]
	}
	return false
}
