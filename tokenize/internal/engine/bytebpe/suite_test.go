package bytebpe

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/refdata"
	"github.com/dsload/dsload/tokenize/internal/vocab"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// suite is what this engine shares with the others.
var suite = enginetest.Suite[listed, *Model, *Encoder]{
	New: newListed, Goldens: []string{"gpt2", "roberta", "cl100k-hf"}, Golden: readJSON,
	Random: randomTexts, Rounds: [3]int{240, 240, 5000}, Texts: 30, AnyBytes: true, SlowFrom: 3000,
	Reference: func(c listed, m *Model) func(string) []uint32 {
		r := newOracle(c, m)
		return func(text string) []uint32 { return r.encode([]byte(text)) }
	},
	Refused: map[string]listed{
		"split":      {Config: Config{Split: numSplits}},
		"both":       {Config{Ranked: true, Merges: []Merge{}}, twoTokens},
		"equal":      {Config{Ranked: true}, slices.Concat(twoTokens, twoTokens)},
		"empty":      {Tokens: [][]byte{{}}},
		"no token":   {Config{Merges: []Merge{{Left: 0, Right: 1, Result: 2}}}, twoTokens},
		"wrong text": {Config{Merges: []Merge{{Left: 0, Right: 0, Result: 1}}}, twoTokens},
	},
}

var twoTokens = [][]byte{[]byte("a"), []byte("b")}

// listed is a Config whose vocabulary is a list.
type listed struct {
	Config
	Tokens [][]byte
}

func newListed(c listed) (*Model, error) {
	c.Vocab = vocab.New(c.Tokens)
	return New(c.Config)
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzEncode(f *testing.F) { suite.Fuzz(f) }

func readJSON(t testing.TB, name string) (listed, []enginetest.Added) {
	var file struct {
		enginetest.AddedTokens
		Model struct {
			Vocab        map[string]uint32
			Merges       []json.RawMessage
			IgnoreMerges bool `json:"ignore_merges"`
		}
	}
	enginetest.ReadJSON(t, name, &file)
	for _, a := range file.Added {
		delete(file.Model.Vocab, a.Text)
	}
	c := listed{Config: Config{Split: GPT2, IgnoreMerges: file.Model.IgnoreMerges}}
	if name == "cl100k-hf" {
		c.Split = CL100K
	}
	for s, id := range file.Model.Vocab {
		for int(id) >= len(c.Tokens) {
			c.Tokens = append(c.Tokens, nil)
		}
		c.Tokens[id], _ = charclass.AppendBytes(nil, []byte(s))
	}
	for _, raw := range file.Model.Merges {
		var pair [2]string
		if raw[0] == '"' {
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			pair[0], pair[1], _ = strings.Cut(s, " ")
		} else if err := json.Unmarshal(raw, &pair); err != nil {
			t.Fatal(err)
		}
		v := file.Model.Vocab
		c.Merges = append(c.Merges, Merge{Left: v[pair[0]], Right: v[pair[1]], Result: v[pair[0]+pair[1]]})
	}
	return c, file.Added
}

// ranked are the models of loadRanks, by file and split.
var ranked sync.Map

// loadRanks is the model of a .tiktoken file of those that are embedded.
func loadRanks(t testing.TB, name string, split Split) *Model {
	t.Helper()
	if m, ok := ranked.Load(name + split.String()); ok {
		return m.(*Model)
	}
	m := newModel(t, readRanks(t, name, split))
	ranked.Store(name+split.String(), m)
	return m
}

func readRanks(t testing.TB, name string, split Split) listed {
	t.Helper()
	file, err := assets.Assets.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c := listed{Config: Config{Split: split, Ranked: true}}
	for line := range bytes.Lines(file) {
		word, rank, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if !ok {
			continue
		}
		id, err := strconv.Atoi(string(rank))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.AppendDecode(nil, word)
		if err != nil {
			t.Fatal(err)
		}
		for id >= len(c.Tokens) {
			c.Tokens = append(c.Tokens, nil)
		}
		c.Tokens[id] = raw
	}
	return c
}

// corpora are texts to split and to measure.
var corpora = slices.Sorted(maps.Keys(enginetest.Corpora))

func readCorpus(t testing.TB, name string) []byte {
	t.Helper()
	return refdata.Read(t, enginetest.Corpora[name])
}
