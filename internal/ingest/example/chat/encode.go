package chat

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/tokenize"
)

// An Encoder encodes texts and computes the mask of the ids that are trained on. It belongs to one
// goroutine.
type Encoder struct {
	*Pieces
	enc     *tokenize.Encoder
	trainOn TrainOn
	offsets []tokenize.Offset
	inOrder bool // each of offsets begins where the one before it ends
	piece   []byte
	tries   int // how often meetNear has tried
}

// NewEncoder returns an Encoder that uses enc, of the tokenizer that the pieces are of.
func (r *Renderer) NewEncoder(p *Pieces, enc *tokenize.Encoder) *Encoder {
	return &Encoder{Pieces: p, enc: enc, trainOn: r.opts.TrainOn}
}

const (
	// maxTracedBytes is the length of the longest text whose tokens are traced through all
	// components of a tokenizer, which takes tracedFactor times the text's memory.
	maxTracedBytes = 512 << 10
	tracedFactor   = 160
	// keptOffsets is the number of offsets that an Encoder keeps room for between texts.
	keptOffsets = 64 << 10
)

// tracing is held while a text is traced: only one at a time, since each takes much memory.
var tracing sync.Mutex

// Append appends the ids of a whole text, without special tokens around it, and for each id whether
// it is trained on.
func (e *Encoder) Append(ids []uint32, mask []bool, t *Text) ([]uint32, []bool, error) {
	from, first := len(ids), len(mask)
	ids = e.enc.AppendTokens(ids, t.Text)
	if err := e.enc.Err(); err != nil {
		return ids[:from], mask, err
	}
	own := ids[from:]
	mask = slices.Grow(mask, len(own))[:first+len(own)]
	if clear(mask[first:]); e.trainOn == TrainAll {
		for i := first; i < len(mask); i++ {
			mask[i] = true
		}
	}
	if len(t.Spans) == 0 || e.trainOn == TrainAll {
		return ids, mask, nil
	}
	if err := e.locate(own, t); err != nil {
		return ids[:from], mask[:first], err
	}
	e.mark(mask[first:], own, t)
	if cap(e.offsets) > keptOffsets {
		e.offsets = nil
	}
	return ids, mask, nil
}

// mark sets the mask of the tokens of the spans.
func (e *Encoder) mark(mask []bool, ids []uint32, t *Text) {
	offsets := e.offsets[:len(ids)]
	at := 0
	for _, s := range t.Spans {
		if s.Start > s.End || s.Start == s.End && !t.Exact {
			continue
		}
		for at > 0 && offsets[at-1].End > s.Start { // spans of nested blocks are nested
			at--
		}
		if e.inOrder {
			at += sort.Search(len(offsets)-at, func(i int) bool { return offsets[at+i].End > s.Start })
		}
		for at < len(ids) && offsets[at].End <= s.Start {
			at++
		}
		if s.Start == s.End { // an empty block marks the token around its place, as in transformers
			if at < len(ids) && offsets[at].Start < s.Start {
				mask[at] = true
			}
			continue
		}
		end := at
		if t.Exact { // up to the first token of the last character, as in transformers
			_, size := utf8.DecodeLastRune(t.Text[s.Start:s.End])
			for end < len(ids) && offsets[end].End <= s.End-size {
				end++
			}
			if end < len(ids) && offsets[end].Start < s.End {
				end++
			}
		} else {
			if e.inOrder {
				end += sort.Search(len(offsets)-at, func(i int) bool { return offsets[at+i].Start >= s.End })
			}
			for end < len(ids) && offsets[end].Start < s.End {
				end++
			}
			end = e.withoutBlank(ids, at, e.withoutNext(at, end, s, t.Text), t.Text)
		}
		for i := at; i < end; i++ {
			mask[i] = true
		}
		at = end
	}
	if e.trainOn == TrainLast {
		end := len(mask)
		for end > 0 && !mask[end-1] {
			end--
		}
		start := end
		for start > 0 && mask[start-1] {
			start--
		}
		clear(mask[:start])
	}
}

// withoutNext excludes a last token that holds nothing of what was said but begins what follows.
func (e *Encoder) withoutNext(start, end int, s Span, text []byte) int {
	if last := end - 1; last > start && e.offsets[last].Start >= s.Said && e.offsets[last].End > s.End &&
		len(bytes.TrimSpace(text[s.End:e.offsets[last].End])) > 0 {
		return last
	}
	return end
}

// withoutBlank excludes the white space after a special token that ends a turn: the model stops at
// that token.
func (e *Encoder) withoutBlank(ids []uint32, start, end int, text []byte) int {
	last := end
	for last > start && len(bytes.TrimSpace(text[e.offsets[last-1].Start:e.offsets[last-1].End])) == 0 {
		last--
	}
	if last > start && last < end && e.isSpecial(ids[last-1]) {
		return last
	}
	return end
}

func (e *Encoder) isSpecial(id uint32) bool {
	e.piece = e.t.AppendText(e.piece[:0], []uint32{id}, tokenize.DecodeOptions{SkipSpecial: true})
	return len(e.piece) == 0
}

// locate finds where each token lies in the text. With most tokenizers the text is the
// concatenation of its tokens; with others the tokens are traced through all components.
func (e *Encoder) locate(ids []uint32, t *Text) error {
	if e.inOrder = e.enc.Verbatim() && e.add(ids, len(t.Text)); e.inOrder || e.walk(ids, t) {
		return nil
	}
	if !e.traced {
		return fmt.Errorf("%w: %s changes the text where a turn of the assistant begins or ends, "+
			"so no token begins or ends there", ErrTemplate, e.t.Name())
	}
	if len(t.Text) > maxTracedBytes {
		return fault.Of(ErrTooLarge, "its text of %d bytes is too long to find which tokens are trained on: "+
			"with %s, which changes the text, the longest is %d bytes", len(t.Text), e.t.Name(), maxTracedBytes)
	}
	tracing.Lock()
	defer tracing.Unlock()
	again, offsets, err := e.t.AppendTokensOffsets(nil, e.offsets[:0], t.Text)
	if err != nil {
		return err
	}
	e.offsets = offsets
	if len(again) != len(ids) {
		return fmt.Errorf("find the tokens of a text: encoding gives %d ids, tracing %d", len(ids), len(again))
	}
	return nil
}

// add sets the offsets of the tokens of a verbatim text of size bytes, and reports whether their widths are known: the
// sum is less if one is 0, which stands for one that is not.
func (e *Encoder) add(ids []uint32, size int) bool {
	offsets, widths, at := slices.Grow(e.offsets[:0], len(ids))[:len(ids)], e.widths, 0
	e.offsets = offsets
	for i, id := range ids {
		end := at + int(widths[id])
		offsets[i] = tokenize.Offset{Start: at, End: end}
		at = end
	}
	return at == size
}

// traced reports whether a tokenizer's tokens must be traced, since their concatenation is not the
// text.
func traced(t *tokenize.Tokenizer) bool {
	return t.Family() != "bytelevel-bpe" && t.Family() != "sentencepiece-bpe"
}

// TracedBytes returns the memory for tracing the tokens of a text of that size, 0 if the tokenizer
// needs no tracing.
func TracedBytes(t *tokenize.Tokenizer, textBytes int64) int64 {
	if !traced(t) {
		return 0
	}
	return tracedFactor*min(textBytes, maxTracedBytes) + 2*t.Details().ResidentBytes()
}

// walk sets the offsets of the tokens, and reports whether their concatenation is the text. If a
// normalizer changed something, or an added token took the white space next to it, walk continues
// where tokens and text next agree; the tokens before that share the stretch, which must not
// contain the border of a span.
func (e *Encoder) walk(ids []uint32, t *Text) bool {
	e.offsets, e.tries = e.offsets[:0], 0
	text := t.Text
	at := 0
	for i := 0; i < len(ids); i++ {
		if n := e.match(ids[i], text[at:]); n > 0 {
			e.offsets = append(e.offsets, tokenize.Offset{Start: at, End: at + n})
			at += n
			continue
		}
		n := e.width(ids[i], text[at:], at == 0 || e.afterAdded(text, at))
		if n < 0 {
			j, next := e.meet(ids[i:], text, at)
			if j < 0 || j > 0 && splits(t.Spans, at, next) {
				return false
			}
			for range j {
				e.offsets = append(e.offsets, tokenize.Offset{Start: at, End: next})
			}
			i, at = i+j-1, next
			continue
		}
		end := at + n
		if n == 0 && at < len(text) { // a space that the tokenizer inserted belongs to the next character
			_, size := utf8.DecodeRune(text[at:])
			end += size
		}
		e.offsets = append(e.offsets, tokenize.Offset{Start: at, End: end})
		at += n
	}
	return at == len(text) || len(bytes.TrimSpace(text[at:])) == 0
}

// splits reports whether a border of a span lies within a stretch.
func splits(spans []Span, start, end int) bool {
	return slices.ContainsFunc(spans, func(s Span) bool {
		return start < s.Start && s.Start < end || start < s.End && s.End < end
	})
}

const (
	meetTokens = 32
	meetBytes  = 256
	meetRun    = 3
	maxTries   = 1 << 20 // in a text
)

// meet returns how many tokens to skip, and where to continue in the text, so that the next meetRun
// tokens, or all remaining ones, agree with the text. If that is not near, it is at the next
// special token. It returns -1 if there is no such position.
func (e *Encoder) meet(ids []uint32, text []byte, at int) (tokens, next int) {
	if e.tries < maxTries {
		if tokens, next = e.meetNear(ids, text, at); tokens >= 0 {
			return tokens, next
		}
	}
	for tokens := 1; tokens < len(ids); tokens++ {
		if !e.isSpecial(ids[tokens]) {
			continue
		}
		token, _ := e.t.Token(ids[tokens])
		if n := bytes.Index(text[at:], []byte(token)); n >= 0 {
			return tokens, at + n
		}
		break
	}
	return -1, 0
}

func (e *Encoder) meetNear(ids []uint32, text []byte, at int) (tokens, next int) {
	for tokens = range min(meetTokens, len(ids)+1) {
		for next = at; next <= min(at+meetBytes, len(text)); next++ {
			if tokens == 0 && next == at {
				continue
			}
			e.tries++
			if tokens == len(ids) {
				return tokens, len(text)
			}
			to, ok := next, true
			for _, id := range ids[tokens:min(tokens+meetRun, len(ids))] {
				n := e.width(id, text[to:], e.afterAdded(text, max(1, to)))
				if ok = n > 0; !ok {
					break
				}
				to += n
			}
			if ok && (tokens+meetRun <= len(ids) || to == len(text)) {
				return tokens, next
			}
		}
	}
	return -1, 0
}

// afterAdded reports whether an added token may end at an offset. After one, a tokenizer may insert
// a space that the text does not have.
func (e *Encoder) afterAdded(text []byte, at int) bool { return text[at-1] == '>' || text[at-1] == ']' }

const metaspace = "▁"

// width returns how many bytes of the text's beginning a token covers, -1 if the text does not
// begin with it.
func (e *Encoder) width(id uint32, text []byte, mayPrepend bool) int {
	if n := e.match(id, text); n > 0 {
		return n
	}
	token, ok := e.t.Token(id)
	if !ok {
		return -1
	}
	if e.bytewise {
		if strings.HasPrefix(string(text[:min(len(text), len(token))]), token) {
			return len(token)
		}
		return -1
	}
	spaced := strings.ReplaceAll(token, metaspace, " ")
	head := string(text[:min(len(text), max(len(spaced), len(token)))])
	switch {
	case strings.HasPrefix(head, spaced):
		return len(spaced)
	case strings.HasPrefix(head, token):
		return len(token)
	case mayPrepend && spaced[0] == ' ' && strings.HasPrefix(head, spaced[1:]):
		return len(spaced) - 1
	case len(token) == 6 && strings.HasPrefix(token, "<0x"):
		if b, err := strconv.ParseUint(token[3:5], 16, 8); err == nil && len(text) > 0 && text[0] == byte(b) {
			return 1
		}
	}
	return -1
}

// appendAlphabet appends the bytes of a token of a byte-level vocabulary, nothing if the token is
// not in its alphabet: printable Latin-1 characters stand for themselves, the other bytes follow in
// order from U+0100.
func appendAlphabet(dst []byte, token string) []byte {
	from := len(dst)
	for _, r := range token {
		switch {
		case r >= '!' && r <= '~', r >= 0xa1 && r <= 0xac, r >= 0xae && r <= 0xff:
			dst = append(dst, byte(r))
		case r >= 0x100 && r < 0x100+33:
			dst = append(dst, byte(r-0x100))
		case r >= 0x121 && r < 0x121+34:
			dst = append(dst, byte(r-0x121+0x7f))
		case r == 0x143:
			dst = append(dst, 0xad)
		default:
			return dst[:from]
		}
	}
	return dst
}
