package unigram

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/charsmap"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/jsonx"
)

// suite is what this engine shares with the others.
var suite = enginetest.Suite[Config, *Model, *Encoder]{
	New: New, Goldens: []string{"t5-small"}, Golden: readJSON,
	Random: func(t testing.TB, rng *rand.Rand, wide bool) (Config, func() string) {
		cfg, letters := randomConfig(t, rng, wide)
		return cfg, func() string { return enginetest.Text(rng, letters) }
	},
	Rounds: [3]int{10, 75, 2000}, Texts: 30,
	Reference: func(cfg Config, _ *Model) func(string) []uint32 {
		words := wordsOf(&cfg)
		return func(text string) []uint32 { return expected(&cfg, words, text) }
	},
	Refused: map[string]Config{
		"empty":  {},
		"scores": {Pieces: onePiece},
		"unk":    {Pieces: onePiece, Scores: []float64{0}, UnkID: 1},
		"nan":    {Pieces: onePiece, Scores: []float64{math.NaN()}},
		"split":  {Pieces: onePiece, Scores: []float64{0}, Split: 9},
		"byte":   {Pieces: onePiece, Scores: []float64{0}, ByteFallback: true, ByteIDs: [256]int32{4}},
		"user":   {Pieces: onePiece, Scores: []float64{0}, Split: SplitNone, UserDefined: []uint32{1}},
		"match":  {Pieces: onePiece, Scores: []float64{0}, NoMatch: []bool{true}},
	},
}

var onePiece = [][]byte{[]byte("a")}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "a b\u2581c \u0340\u0301")
	f.Add(uint64(63), "\x01\x01\u2581  V\x01u\x01c\x01\x01\x00\u0301")
	suite.Fuzz(f)
}

func BenchmarkSpeed(b *testing.B) { suite.Speed(b) }

func BenchmarkHostile(b *testing.B) { suite.Hostile(b) }

func readJSON(t testing.TB, name string) (Config, []enginetest.Added) {
	var f struct {
		enginetest.AddedTokens
		Normalizer struct {
			Charsmap []byte `json:"precompiled_charsmap"`
		}
		Model struct {
			UnkID int `json:"unk_id"`
			Vocab []json.RawMessage
		}
	}
	enginetest.ReadJSON(t, name, &f)
	cfg := Config{UnkID: f.Model.UnkID, Split: SplitWords}
	for _, raw := range f.Model.Vocab {
		var piece string
		var score json.RawMessage
		if err := json.Unmarshal(raw, &[]any{&piece, &score}); err != nil {
			t.Fatal(err)
		}
		x, ok := jsonx.ParseFloat(score)
		if !ok {
			t.Fatalf("bad score %s", score)
		}
		cfg.Pieces = append(cfg.Pieces, []byte(piece))
		cfg.Scores = append(cfg.Scores, x)
	}
	var err error
	if cfg.Charsmap, err = charsmap.Parse(f.Normalizer.Charsmap); err != nil {
		t.Fatal(err)
	}
	return cfg, f.Added
}
