package unigram

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/charsmap"
	"github.com/dsload/dsload/tokenize/internal/chunkcache"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/reference"
)

var runs = regexp.MustCompile(" {2,}")

// expected is the pipeline step by step over the whole text, with words as wordsOf makes them.
func expected(cfg *Config, words *reference.Unigram, text string) []uint32 {
	if cfg.Nmt {
		var sb strings.Builder
		for i, r := range text {
			if r = charclass.Nmt(r); r >= 0 {
				sb.WriteRune(r)
			} else if i == 0 && cfg.PrefixFirst {
				c := *cfg
				c.Prefix = false
				cfg = &c
			}
		}
		text = sb.String()
	}
	if cfg.Charsmap != nil {
		text = string(cfg.Charsmap.Append(nil, []byte(text)))
	}
	if cfg.Split == SplitWords {
		var ids []uint32
		for _, w := range strings.FieldsFunc(text, unicode.IsSpace) {
			if !strings.HasPrefix(w, metaspace) {
				w = metaspace + w
			}
			ids = append(ids, expectedParts(words, w)...)
		}
		return ids
	}
	if cfg.StripRight {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if cfg.CollapseSpaces {
		text = runs.ReplaceAllString(text, " ")
	}
	text = strings.ReplaceAll(text, " ", metaspace)
	if text == "" {
		return nil
	}
	if cfg.Prefix && !strings.HasPrefix(text, metaspace) {
		text = metaspace + text
	}
	return expectedParts(words, text)
}

func expectedParts(words *reference.Unigram, text string) (ids []uint32) {
	for text != "" {
		n := strings.Index(text[1:], metaspace) + 1
		if n == 0 {
			n = len(text)
		}
		ids = append(ids, words.Encode(text[:n])...)
		text = text[n:]
	}
	return ids
}

func wordsOf(cfg *Config) *reference.Unigram {
	m := &reference.Unigram{Vocab: map[string]uint32{}, Scores: cfg.Scores, Unk: uint32(cfg.UnkID)}
	for id, p := range cfg.Pieces {
		if len(p) > 0 {
			m.Vocab[string(p)] = uint32(id)
		}
	}
	if cfg.ByteFallback {
		m.Bytes = map[byte]uint32{}
		for b, id := range cfg.ByteIDs {
			if id >= 0 {
				m.Bytes[byte(b)] = uint32(id)
			}
		}
	}
	return m
}

func makeCharsmap(t testing.TB, m map[string]string) *charsmap.Map {
	cm, err := charsmap.Parse(enginetest.Charsmap(m))
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

var testCharsmap *charsmap.Map

var testMap = map[string]string{
	"\t": " ", "\n": " ", "\r": " ", "\x01": "", "\u00A0": " ", "\u3000": " ", "\u2028": " ", "\u200B": " ",
	"\uFF21": "A", "\uFB01": "fi", "\u0340": "\u0300",
	"e\u0301": "\u00E9", "\u0344": "\u0308\u0301", "\u2026": "...", "a\u0301": "\u00E1", "\uAC01": "xyz ",
	"\u037E": ";",
}

func randomConfig(t testing.TB, rng *rand.Rand, wide bool) (Config, []string) {
	coin := func() bool { return rng.IntN(2) == 0 }
	cfg := Config{Nmt: coin(), Split: Split(rng.IntN(2)), Prefix: coin(), ByteFallback: coin()}
	if coin() {
		if testCharsmap == nil {
			testCharsmap = makeCharsmap(t, testMap)
		}
		cfg.Charsmap = testCharsmap
	}
	if cfg.Split == SplitMetaspace {
		cfg.CollapseSpaces = coin()
		cfg.StripRight = cfg.CollapseSpaces && coin()
		cfg.PrefixFirst = cfg.Prefix && coin()
	}
	seen := map[string]bool{}
	add := func(s string, score float64) {
		if !seen[s] || rng.IntN(4) == 0 { // of equal pieces the last counts
			seen[s] = true
			cfg.Pieces, cfg.Scores = append(cfg.Pieces, []byte(s)), append(cfg.Scores, score)
		}
	}
	add("<unk>", 0)
	if wide {
		cfg.Pieces, cfg.Scores = append(cfg.Pieces, make([][]byte, 70000)...),
			append(cfg.Scores, make([]float64, 70000)...)
	}
	for b := range cfg.ByteIDs {
		cfg.ByteIDs[b] = -1
		if rng.IntN(50) > 0 {
			cfg.ByteIDs[b] = int32(len(cfg.Pieces))
			add("<0x"+string("0123456789ABCDEF"[b>>4])+string("0123456789ABCDEF"[b&15])+">", 0)
		}
	}
	list := []string{"a", "b", "c", "A", "1", ".", "\u00E9", "\u0301", "e", "\u4E2D", "\U0001F600", "f", "i", metaspace}
	letters := []string{metaspace}
	for range 1 + rng.IntN(7) {
		letters = append(letters, list[rng.IntN(len(list))])
	}
	for range rng.IntN(60) {
		s := ""
		if rng.IntN(3) == 0 {
			s = metaspace
		}
		for range 1 + rng.IntN(4) {
			s += letters[rng.IntN(len(letters))]
		}
		add(s, -float64(rng.IntN(40))/4) // many ties
	}
	return cfg, append(letters, " ")
}

func TestScratchIsReturned(t *testing.T) {
	m, err := New(Config{Pieces: [][]byte{[]byte("<unk>"), []byte("a")}, Scores: []float64{0, -1}})
	if err != nil {
		t.Fatal(err)
	}
	e := m.NewEncoder(0)
	if ids := e.Append(nil, []byte(strings.Repeat("a", 1<<20)), true, true); len(ids) != 1<<20+1 {
		t.Fatalf("%d ids", len(ids))
	}
	e.Append(nil, []byte("a"), true, true)
	if cap(e.paths) > 2*keepScratch || cap(e.sums) > 2*keepScratch || cap(e.word) > 2*keepScratch ||
		len(e.win.Free()) > 64<<10 {
		t.Errorf("kept %d paths, %d sums, %d bytes, a window of %d", cap(e.paths), cap(e.sums), cap(e.word),
			len(e.win.Free()))
	}
}

// TestStretches searches words by stretches of all lengths: paths meet or do not, and unknown
// characters in a row lie across where they do.
func TestStretches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		cfg, letters := randomConfig(t, rng, false)
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := m.newEncoder(chunkcache.MinBytes)
		words := wordsOf(&cfg)
		odd := []string{"?", "\u0416", "<unk>", letters[0]}
		for range 20 {
			word := ""
			for n := rng.IntN(200); len(word) < n; {
				list := letters[:len(letters)-1]
				if rng.IntN(2) == 0 {
					list = odd
				}
				word += strings.Repeat(list[rng.IntN(len(list))], 1+rng.IntN(4))
			}
			want := words.Encode(word)
			for _, stretch := range []int{1, 2, 3, 7, 30, 100, stretchBytes} {
				if got := e.appendWord(nil, []byte(word), stretch); !slices.Equal(got, want) {
					t.Fatalf("%q by stretches of %d: ids %v, want %v", word, stretch, got, want)
				}
			}
		}
	}
}

// TestStretchMemory reports that the search of a long word needs paths for a stretch of it.
func TestStretchMemory(t *testing.T) {
	m, err := New(Config{Pieces: [][]byte{[]byte("<unk>"), []byte("a"), []byte("abc"), []byte("bc")},
		Scores: []float64{0, -3, -4, -5}})
	if err != nil {
		t.Fatal(err)
	}
	e := m.newEncoder(chunkcache.MinBytes)
	for _, part := range []string{"abc", "x", "abcxyz"} {
		if ids := e.AppendWord(nil, bytes.Repeat([]byte(part), 1<<18)); len(ids) == 0 || len(e.paths) == 0 ||
			len(e.paths) > keepScratch {
			t.Errorf("%q: %d ids, %d paths", part, len(ids), len(e.paths))
		}
	}
}

func FuzzCharsmap(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x00\x00\x00\x00a\x00"), "a e\u0301")
	f.Fuzz(func(t *testing.T, blob []byte, text string) {
		cm, err := charsmap.Parse(blob)
		if err != nil {
			return
		}
		cm.Append(nil, []byte(text))
		for rest := []byte(text); len(rest) > 0; {
			_, n := cm.Longest(rest)
			rest = rest[max(n, 1):]
		}
	})
}
