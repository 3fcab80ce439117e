package wordpiece

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sharedPath finds a file of the shared test data, or skips the test.
func sharedPath(t testing.TB, name string) string {
	dir := os.Getenv("DSLOAD_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	p := filepath.Join(dir, name)
	if _, err := os.Stat(p); err != nil {
		t.Skip("no shared test data: set DSLOAD_SHARED")
	}
	return p
}

func readShared(t testing.TB, name string) []byte {
	b, err := os.ReadFile(sharedPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tokenizer is a model with the added tokens that are cut out of the text before it.
type tokenizer struct {
	m     *Model
	added map[string]uint32
}

func loadJSON(t testing.TB, name string) tokenizer {
	var f struct {
		Added []struct {
			ID      uint32
			Content string
		} `json:"added_tokens"`
		Model struct {
			Vocab map[string]int
		}
	}
	if err := json.Unmarshal(readShared(t, "tokenizers/"+name+"/tokenizer.json"), &f); err != nil {
		t.Fatal(err)
	}
	cfg := Config{UnkID: uint32(f.Model.Vocab["[UNK]"]), Prefix: []byte("##"), MaxInputCharsPerWord: 100,
		Normalizer: Normalizer{CleanText: true, HandleChineseChars: true, StripAccents: true, Lowercase: true}}
	for s, id := range f.Model.Vocab {
		if id >= len(cfg.Pieces) {
			cfg.Pieces = append(cfg.Pieces, make([][]byte, id+1-len(cfg.Pieces))...)
		}
		cfg.Pieces[id] = []byte(s)
	}
	var err error
	tok := tokenizer{added: map[string]uint32{}}
	for _, a := range f.Added {
		tok.added[a.Content] = a.ID
	}
	if tok.m, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return tok
}

// encode cuts the added tokens out, leftmost and longest first.
func (k tokenizer) encode(e *Encoder, dst []uint32, text string) []uint32 {
	begin := 0
	for i := 0; i < len(text); {
		best := ""
		if text[i] == '[' {
			for a := range k.added {
				if len(a) > len(best) && strings.HasPrefix(text[i:], a) {
					best = a
				}
			}
		}
		if best == "" {
			i++
			continue
		}
		dst = e.Append(dst, []byte(text[begin:i]), true, true)
		dst = append(dst, k.added[best])
		i += len(best)
		begin = i
	}
	return e.Append(dst, []byte(text[begin:]), true, true)
}

var goldenTokenizers = []struct {
	name string
	load func(testing.TB) tokenizer
}{
	{"bert-uncased", func(t testing.TB) tokenizer { return loadJSON(t, "bert-uncased") }},
}

func TestGoldenCases(t *testing.T) {
	for _, g := range goldenTokenizers {
		t.Run(g.name, func(t *testing.T) {
			tok := g.load(t)
			texts := map[int]string{}
			lines(t, "golden/cases.jsonl", func(line []byte) {
				var c struct {
					ID   int
					Text string
				}
				if err := json.Unmarshal(line, &c); err != nil {
					t.Fatal(err)
				}
				texts[c.ID] = c.Text
			})
			e := tok.m.NewEncoder(0)
			n := 0
			lines(t, "golden/"+g.name+".cases.jsonl", func(line []byte) {
				var c struct {
					ID  int
					IDs []uint32
				}
				if err := json.Unmarshal(line, &c); err != nil {
					t.Fatal(err)
				}
				n++
				if got := tok.encode(e, nil, texts[c.ID]); !slices.Equal(got, c.IDs) {
					t.Errorf("case %d %q:\n got %v\nwant %v", c.ID, texts[c.ID], got, c.IDs)
				}
			})
			if n == 0 {
				t.Fatal("no cases")
			}
		})
	}
}

func lines(t testing.TB, name string, f func([]byte)) {
	sc := bufio.NewScanner(bytes.NewReader(readShared(t, name)))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		f(sc.Bytes())
	}
}

var corpora = map[string]string{
	"multilingual-tldr.txt": "corpora/multilingual/tldr.txt",
	"prose-peps.txt":        "corpora/prose/peps.txt",
	"wikitext-2-test.txt":   "corpora/wikitext-2/test.txt",
	"wikitext-2-valid.txt":  "corpora/wikitext-2/valid.txt",
}

func TestGoldenCorpora(t *testing.T) {
	for _, g := range goldenTokenizers {
		t.Run(g.name, func(t *testing.T) {
			tok := g.load(t)
			var want map[string]json.RawMessage
			if err := json.Unmarshal(readShared(t, "golden/"+g.name+".corpora.json"), &want); err != nil {
				t.Fatal(err)
			}
			for name, file := range corpora {
				var w struct {
					Tokens int
					SHA256 string
				}
				if err := json.Unmarshal(want[name], &w); err != nil {
					t.Fatal(err)
				}
				for _, size := range []int{0, 1 << 18} {
					tokens, sum := digest(tok, tok.m.NewEncoder(size), string(readShared(t, file)))
					if tokens != w.Tokens || sum != w.SHA256 {
						t.Errorf("%s, cache %d: %d tokens, digest %s; want %d, %s", name, size, tokens, sum, w.Tokens, w.SHA256)
					}
				}
			}
		})
	}
}

// digest hashes the ids of every line as the golden files do.
func digest(tok tokenizer, e *Encoder, text string) (int, string) {
	h := sha256.New()
	tokens := 0
	var ids []uint32
	var buf []byte
	for line := range strings.Lines(text) {
		ids = tok.encode(e, ids[:0], strings.TrimSuffix(line, "\n"))
		tokens += len(ids)
		buf = binary.LittleEndian.AppendUint32(buf[:0], uint32(len(ids)))
		for _, id := range ids {
			buf = binary.LittleEndian.AppendUint32(buf, id)
		}
		h.Write(buf)
	}
	return tokens, hex.EncodeToString(h.Sum(nil))
}
