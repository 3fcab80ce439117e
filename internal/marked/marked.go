// Package marked shows token ids as text in which one sees what a model is trained on: which tokens carry loss, where
// the documents of a packed row begin, which tokens are special.
//
//	ids, loss mask, segments -> Cut -> pieces -> Screen (a terminal, a pipe), HTML (a page, a notebook)
//
// Pieces hold text as it is, for programs; Screen and HTML alone make it harmless.
package marked

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize"
)

// A Piece is a stretch of text whose tokens have the same marks.
type Piece struct {
	Text    string `json:"text"`
	Tokens  int    `json:"tokens"`
	Loss    bool   `json:"loss"`              // they carry loss
	Special bool   `json:"special,omitempty"` // one special token
	Match   bool   `json:"match,omitempty"`   // what was searched for
	// Segment is the number of its document among those of a packed row, from 0.
	Segment int `json:"segment,omitempty"`
}

// Cut returns the text of ids in pieces, one for each token if each is set. Tokens that share a character share a
// piece. Without a tokenizer the text is the ids. A nil loss is that every token carries loss; segments are the lengths
// of the documents of a packed row, nil for other rows.
func Cut(t *tokenize.Tokenizer, ids []uint32, loss []bool, segments []int32, each bool) (pieces []Piece) {
	var text strings.Builder
	var ends []int // where each piece ends in the text
	segment, last := 0, 0
	eachText(t, ids, func(from, to int, own string) {
		for ; segment < len(segments) && from >= last+int(segments[segment]); segment++ {
			last += int(segments[segment])
		}
		text.WriteString(own)
		p := Piece{Tokens: to - from, Loss: loss == nil || slices.Contains(loss[from:to], true),
			Special: to-from == 1 && isSpecial(t, ids[from:to]), Segment: segment}
		if n := len(pieces) - 1; n >= 0 && !each && !p.Special && !pieces[n].Special && pieces[n].Loss == p.Loss &&
			pieces[n].Segment == segment {
			pieces[n].Tokens += p.Tokens
			ends[n] = text.Len()
			return
		}
		pieces, ends = append(pieces, p), append(ends, text.Len())
	})
	at := 0
	for i, end := range ends {
		pieces[i].Text, at = text.String()[at:end], end
	}
	return pieces
}

func isSpecial(t *tokenize.Tokenizer, id []uint32) bool {
	return t != nil && t.Decode(id) != "" && len(t.AppendText(nil, id, tokenize.DecodeOptions{SkipSpecial: true})) == 0
}

const (
	maxShared = 8  // tokens of one character, and of bytes that are none
	context   = 16 // tokens before a token that can change its text
)

// eachText passes the text of each token to visit, or of tokens that share a character. It decodes a window of
// tokens, because what a token's text is depends on those before it.
func eachText(t *tokenize.Tokenizer, ids []uint32, visit func(from, to int, text string)) {
	if t == nil {
		for i, id := range ids {
			visit(i, i+1, strconv.Itoa(int(id))+" ")
		}
		return
	}
	window, from, before := 0, 0, ""
	for to := 1; to <= len(ids); to++ {
		text := t.Decode(ids[window:to])
		known := to // the last tokens may be part of a character
		if strings.HasSuffix(text, "\uFFFD") && to < len(ids) {
			if to-from < maxShared {
				continue
			}
			known -= utf8.UTFMax - 1
		}
		for cut := from + 1; cut < known; cut++ { // where a token held U+FFFD or part of a character that never ended
			left := t.Decode(ids[window:cut])
			rest, same := strings.CutPrefix(text, left)
			if same && strings.TrimPrefix(rest, " ") == strings.TrimPrefix(t.Decode(ids[cut:to]), " ") {
				visit(from, cut, left[shared(before, left):])
				from, before = cut, left
			}
		}
		if known == to || to-from >= maxShared {
			visit(from, to, text[shared(before, text):])
			from, before = to, text
		}
		if from-window >= 2*context {
			window = from - context
			before = t.Decode(ids[window:from])
		}
	}
}

// shared returns the length of the longest common prefix of whole characters.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

// Highlight cuts pieces at the matches in their joined text, and marks those that are matched. matches are pairs of
// offsets in bytes, as package regexp returns them.
func Highlight(pieces []Piece, matches [][]int) (out []Piece) {
	at := 0 // where the piece's rest begins
	for _, p := range pieces {
		if p.Text == "" { // ids without a token
			out = append(out, p)
		}
		for len(p.Text) > 0 {
			for len(matches) > 0 && (matches[0][1] <= at || matches[0][0] == matches[0][1]) {
				matches = matches[1:]
			}
			n := len(p.Text)
			part := p
			if len(matches) > 0 {
				if part.Match = matches[0][0] <= at; part.Match {
					n = min(n, matches[0][1]-at)
				} else {
					n = min(n, matches[0][0]-at)
				}
			}
			part.Text = p.Text[:n]
			out = append(out, part)
			p.Text, p.Tokens, at = p.Text[n:], 0, at+n
		}
	}
	return out
}
