package spbpe

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

func loadJSON(t testing.TB, name string) enginetest.Tokenizer {
	var f struct {
		Added []struct {
			ID      uint32
			Content string
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges []json.RawMessage
		}
	}
	if err := json.Unmarshal(enginetest.Read(t, "tokenizers/"+name+"/tokenizer.json"), &f); err != nil {
		t.Fatal(err)
	}
	cfg := Config{ByteFallback: true, FuseUnk: true, Prefix: PrefixAlways, UnkID: f.Model.Vocab["<unk>"],
		ByteIDs: byteIDs(f.Model.Vocab)}
	for s, id := range f.Model.Vocab {
		if id >= len(cfg.Pieces) {
			cfg.Pieces = append(cfg.Pieces, make([][]byte, id+1-len(cfg.Pieces))...)
		}
		cfg.Pieces[id] = []byte(s)
	}
	for _, raw := range f.Model.Merges {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		l, r, _ := strings.Cut(s, " ")
		cfg.Merges = append(cfg.Merges, [2]uint32{uint32(f.Model.Vocab[l]), uint32(f.Model.Vocab[r])})
	}
	var tok enginetest.Tokenizer
	for _, a := range f.Added {
		tok.Added = append(tok.Added, enginetest.Added{ID: a.ID, Text: a.Content})
	}
	slices.SortFunc(tok.Added, func(a, b enginetest.Added) int { return len(b.Text) - len(a.Text) })
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tok.New = func(n int) enginetest.Encoder { return m.NewEncoder(n) }
	return tok
}

func byteIDs(vocab map[string]int) (ids [256]int32) {
	for b := range ids {
		id, ok := vocab["<0x"+strings.ToUpper(hex.EncodeToString([]byte{byte(b)}))+">"]
		if !ok {
			id = -1
		}
		ids[b] = int32(id)
	}
	return ids
}

// loadSentencePiece reads the pieces of a .model file: just enough of its protobuf.
func loadSentencePiece(t testing.TB, name string) enginetest.Tokenizer {
	cfg := Config{ByteFallback: true, FuseUnk: true, Prefix: PrefixAlways}
	vocab := map[string]int{}
	fields(enginetest.Read(t, name), func(num int, val []byte, _ uint64) {
		if num != 1 {
			return
		}
		kind := uint64(1)
		var score float32
		var piece []byte
		fields(val, func(num int, val []byte, x uint64) {
			switch num {
			case 1:
				piece = val
			case 2:
				score = math.Float32frombits(uint32(x))
			case 3:
				kind = x
			}
		})
		vocab[string(piece)] = len(cfg.Pieces)
		if kind == 2 {
			cfg.UnkID = len(cfg.Pieces)
		}
		cfg.Pieces = append(cfg.Pieces, piece)
		cfg.Scores = append(cfg.Scores, score)
		cfg.NoMerge = append(cfg.NoMerge, kind != 1)
	})
	cfg.ByteIDs = byteIDs(vocab)
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Tokenizer{New: func(n int) enginetest.Encoder { return m.NewEncoder(n) }}
}

func fields(b []byte, f func(num int, val []byte, x uint64)) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		b = b[n:]
		switch tag & 7 {
		case 0:
			x, n := binary.Uvarint(b)
			f(int(tag>>3), nil, x)
			b = b[n:]
		case 2:
			l, n := binary.Uvarint(b)
			f(int(tag>>3), b[n:n+int(l)], 0)
			b = b[n+int(l):]
		case 5:
			f(int(tag>>3), nil, uint64(binary.LittleEndian.Uint32(b)))
			b = b[4:]
		}
	}
}

var goldenTokenizers = []enginetest.Golden{
	{Name: "phi-3", Load: func(t testing.TB) enginetest.Tokenizer { return loadJSON(t, "phi-3") }},
	{Name: "llama2.model", Load: func(t testing.TB) enginetest.Tokenizer {
		return loadSentencePiece(t,
			"tokenizers/llama2.model")
	}},
}

func TestGoldenCases(t *testing.T) { enginetest.AllCases(t, goldenTokenizers) }

func TestGoldenCorpora(t *testing.T) { enginetest.AllDigests(t, goldenTokenizers) }

// TestHostileChunks: with real models, long chunks merged by windows are what they are merged at
// once.
func TestHostileChunks(t *testing.T) {
	for _, g := range goldenTokenizers {
		e := g.Load(t).New(1).(*Encoder)
		for _, h := range enginetest.HostileTexts(8 << 10) {
			text := bytes.ReplaceAll(h.Text, metaspaceBytes, []byte(" "))
			for _, n := range []int{41, 65, 300, len(text)} {
				n = min(n, len(text))
				if got, want := e.appendLong(nil, text[:n]), e.appendWhole(nil, text[:n]); !slices.Equal(got, want) {
					t.Errorf("%s, %d bytes of %s: windows and whole differ", g.Name, n, h.Name)
				}
			}
		}
	}
}

func BenchmarkSpeed(b *testing.B) { enginetest.AllSpeeds(b, goldenTokenizers) }

func BenchmarkHostile(b *testing.B) { enginetest.AllHostile(b, goldenTokenizers) }
