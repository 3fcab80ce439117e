package wordpiece

import (
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

// suite is what this engine shares with the others.
var suite = enginetest.Suite[Config, *Model, *Encoder]{
	New: New, Goldens: []string{"bert-uncased"}, Golden: readJSON,
	Random: func(_ testing.TB, rng *rand.Rand, wide bool) (Config, func() string) {
		cfg, letters := randomConfig(rng, wide)
		return cfg, func() string { return enginetest.Text(rng, letters) }
	},
	Rounds: [3]int{150, 150, 2000}, Texts: 30,
	Reference: func(cfg Config, _ *Model) func(string) []uint32 {
		find := pieceIDs(&cfg)
		return func(text string) []uint32 { return expected(&cfg, find, text) }
	},
	Refused: map[string]Config{
		"empty": {},
		"unk":   {Pieces: [][]byte{[]byte("a")}, UnkID: 1},
		"limit": {Pieces: [][]byte{[]byte("a")}, MaxInputCharsPerWord: -1},
	},
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "a B\u00C9.\u4E2D \u1AB0\U0001E4EC")
	suite.Fuzz(f)
}

func BenchmarkSpeed(b *testing.B) { suite.Speed(b) }

func BenchmarkHostile(b *testing.B) { suite.Hostile(b) }

func readJSON(t testing.TB, name string) (Config, []enginetest.Added) {
	var f struct {
		enginetest.AddedTokens
		Model struct {
			Vocab map[string]int
		}
	}
	enginetest.ReadJSON(t, name, &f)
	cfg := Config{Pieces: enginetest.Pieces(f.Model.Vocab), UnkID: uint32(f.Model.Vocab["[UNK]"]),
		Prefix: []byte("##"), MaxInputCharsPerWord: 100,
		Normalizer: Normalizer{CleanText: true, HandleChineseChars: true, StripAccents: true, Lowercase: true}}
	return cfg, f.Added
}
