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
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// suite is what this engine shares with the others.
var suite = enginetest.Suite[Config, *Model, *Encoder]{
	New: New, Goldens: []string{"phi-3", "llama2.model"},
	Golden: func(t testing.TB, name string) (Config, []enginetest.Added) {
		if strings.HasSuffix(name, ".model") {
			return readSentencePiece(t, name), nil
		}
		return readJSON(t, name)
	},
	Random: randomTexts, Rounds: [3]int{100, 100, 2000}, Texts: 20, SlowFrom: 2000,
	Reference: func(cfg Config, _ *Model) func(string) []uint32 { return newOracle(&cfg).encode },
	Refused: map[string]Config{
		"empty":      {},
		"unk":        {Pieces: pieces("a"), UnkID: 1},
		"merge":      {Pieces: pieces("a", "b"), Merges: [][2]uint32{{0, 5}}},
		"no result":  {Pieces: pieces("a", "b"), Merges: [][2]uint32{{0, 1}}},
		"twice":      {Pieces: pieces("a", "a")},
		"scores":     {Pieces: pieces("a"), Scores: []float32{}},
		"byte":       {Pieces: pieces("a"), ByteFallback: true, ByteIDs: [256]int32{7}},
		"no unknown": {Pieces: pieces("a"), UnkID: -1},
		"user":       {Pieces: pieces("a"), UserDefined: []uint32{3}},
	},
}

func pieces(list ...string) (pieces [][]byte) {
	for _, s := range list {
		pieces = append(pieces, []byte(s))
	}
	return pieces
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "a b\u2581c")
	suite.Fuzz(f)
}

func BenchmarkSpeed(b *testing.B) { suite.Speed(b) }

func BenchmarkHostile(b *testing.B) { suite.Hostile(b) }

func readJSON(t testing.TB, name string) (Config, []enginetest.Added) {
	var f struct {
		enginetest.AddedTokens
		Model struct {
			Vocab  map[string]int
			Merges []json.RawMessage
		}
	}
	enginetest.ReadJSON(t, name, &f)
	cfg := Config{Pieces: enginetest.Pieces(f.Model.Vocab), UnkID: f.Model.Vocab["<unk>"], FuseUnk: true,
		Prefix: PrefixAlways, ByteFallback: true, ByteIDs: byteIDs(f.Model.Vocab)}
	for _, raw := range f.Model.Merges {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		l, r, _ := strings.Cut(s, " ")
		cfg.Merges = append(cfg.Merges, [2]uint32{uint32(f.Model.Vocab[l]), uint32(f.Model.Vocab[r])})
	}
	return cfg, f.Added
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

// readSentencePiece reads the pieces of a .model file: just enough of its protobuf.
func readSentencePiece(t testing.TB, name string) Config {
	cfg := Config{ByteFallback: true, FuseUnk: true, Prefix: PrefixAlways}
	vocab := map[string]int{}
	fields(refdata.Read(t, "tokenizers/"+name), func(num int, val []byte, _ uint64) {
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
	return cfg
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

// TestHostileChunks: with real models, long chunks merged by windows are what they are merged at
// once.
func TestHostileChunks(t *testing.T) {
	for _, name := range suite.Goldens {
		e := suite.Load(t, name).NewEncoder(1)
		for _, h := range enginetest.HostileTexts(8 << 10) {
			text := bytes.ReplaceAll(h.Text, metaspaceBytes, []byte(" "))
			for _, n := range []int{41, 65, 300, len(text)} {
				n = min(n, len(text))
				if got, want := e.appendLong(nil, text[:n]), e.appendWhole(nil, text[:n]); !slices.Equal(got, want) {
					t.Errorf("%s, %d bytes of %s: windows and whole differ", name, n, h.Name)
				}
			}
		}
	}
}
