package enginetest

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// Encoder is one goroutine's handle on an engine.
type Encoder interface {
	Append(dst []uint32, segment []byte, first, last bool) []uint32
}

// Added is an added token.
type Added struct {
	ID     uint32
	Text   string `json:"content"`
	LStrip bool   // it takes the white space before it
}

// AddedTokens are the added tokens of a tokenizer, all of one first byte. It is embedded in what ReadJSON
// decodes.
type AddedTokens struct {
	Added []Added `json:"added_tokens"`
}

// ReadJSON decodes the tokenizer.json of the named tokenizer.
func ReadJSON(t testing.TB, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(refdata.Read(t, "tokenizers/"+name+"/tokenizer.json"), into); err != nil {
		t.Fatal(err)
	}
}

// Pieces lists the tokens of a vocabulary by id, nil where an id has none.
func Pieces(vocab map[string]int) (pieces [][]byte) {
	for s, id := range vocab {
		if id >= len(pieces) {
			pieces = append(pieces, make([][]byte, id+1-len(pieces))...)
		}
		pieces[id] = []byte(s)
	}
	return pieces
}

// tokenizer is an engine with the added tokens that are cut out of the text first.
type tokenizer struct {
	newEncoder func(cacheBytes int) Encoder
	added      []Added // the longest first
}

func newTokenizer(newEncoder func(cacheBytes int) Encoder, added []Added) tokenizer {
	added = slices.SortedFunc(slices.Values(added), func(a, b Added) int { return len(b.Text) - len(a.Text) })
	return tokenizer{newEncoder, added}
}

// encode encodes text with the added tokens cut out, leftmost and longest first.
func (k tokenizer) encode(e Encoder, dst []uint32, text []byte) []uint32 {
	if len(k.added) == 0 {
		return e.Append(dst, text, true, true)
	}
	head := k.added[0].Text[0]
	begin := 0
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], head)
		if n < 0 {
			break
		}
		i += n
		a, ok := k.match(text[i:])
		if !ok {
			i++
			continue
		}
		segment := text[begin:i]
		if a.LStrip {
			segment = bytes.TrimRight(segment, " \t\r\n")
		}
		dst = e.Append(dst, segment, true, true)
		dst = append(dst, a.ID)
		i += len(a.Text)
		begin = i
	}
	return e.Append(dst, text[begin:], true, true)
}

// match returns the added token that text begins with.
func (k tokenizer) match(text []byte) (Added, bool) {
	if len(text) < 3 {
		return Added{}, false
	}
	for _, a := range k.added {
		if a.Text[1] == text[1] && a.Text[2] == text[2] && bytes.HasPrefix(text, []byte(a.Text)) {
			return a, true
		}
	}
	return Added{}, false
}
