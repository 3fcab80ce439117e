package bytebpe

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// shared returns the path of a file of the shared test data, or skips the test.
func shared(t testing.TB, name string) string {
	t.Helper()
	return enginetest.Path(t, name)
}

func readShared(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(shared(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// byteAlphabet maps the characters of the byte-level alphabet to bytes.
var byteAlphabet = sync.OnceValue(func() map[rune]byte {
	back := make(map[rune]byte)
	next := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			back[rune(b)] = byte(b)
		} else {
			back[next] = byte(b)
			next++
		}
	}
	return back
})

func rawToken(s string) []byte {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := byteAlphabet()[r]
		if !ok {
			return nil
		}
		out = append(out, b)
	}
	return out
}

// fixture is a model with the added tokens of its file.
type fixture struct {
	model *Model
	added map[string]uint32
	strip map[string]bool // added tokens that take the white space before them
}

var fixtures sync.Map

func loadFixture(t testing.TB, name string) *fixture {
	t.Helper()
	if f, ok := fixtures.Load(name); ok {
		return f.(*fixture)
	}
	var file struct {
		Model struct {
			Vocab        map[string]uint32
			Merges       []json.RawMessage
			IgnoreMerges bool `json:"ignore_merges"`
		}
		Added []struct {
			ID      uint32
			Content string
			LStrip  bool
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(readShared(t, "tokenizers/"+name+"/tokenizer.json"), &file); err != nil {
		t.Fatal(err)
	}
	f := &fixture{added: make(map[string]uint32), strip: make(map[string]bool)}
	for _, a := range file.Added {
		f.added[a.Content] = a.ID
		f.strip[a.Content] = a.LStrip
		delete(file.Model.Vocab, a.Content)
	}
	c := Config{Split: GPT2, IgnoreMerges: file.Model.IgnoreMerges}
	if name == "cl100k-hf" {
		c.Split = CL100K
	}
	for s, id := range file.Model.Vocab {
		for int(id) >= len(c.Tokens) {
			c.Tokens = append(c.Tokens, nil)
		}
		c.Tokens[id] = rawToken(s)
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
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	f.model = m
	fixtures.Store(name, f)
	return f
}

// loadRanks is the model of a .tiktoken file of those that are embedded.
func loadRanks(t testing.TB, name string, split Split) *Model {
	t.Helper()
	if m, ok := fixtures.Load(name + split.String()); ok {
		return m.(*Model)
	}
	m, err := New(readRanks(t, name, split))
	if err != nil {
		t.Fatal(err)
	}
	fixtures.Store(name+split.String(), m)
	return m
}

func readRanks(t testing.TB, name string, split Split) Config {
	t.Helper()
	file, err := assets.Assets.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Split: split, Ranked: true}
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

// encode splits the text at added tokens, longest first at each place, and encodes the segments.
func (f *fixture) encode(e *Encoder, dst []uint32, text []byte) []uint32 {
	begin := 0
	for i := 0; i < len(text); {
		longest := ""
		if text[i] != '<' {
			i++
			continue
		}
		for a := range f.added {
			if len(a) > len(longest) && bytes.HasPrefix(text[i:], []byte(a)) {
				longest = a
			}
		}
		if longest == "" {
			i++
			continue
		}
		segment := text[begin:i]
		if f.strip[longest] {
			segment = bytes.TrimRight(segment, " \t\r\n")
		}
		dst = e.Append(dst, segment, true, true)
		dst = append(dst, f.added[longest])
		i += len(longest)
		begin = i
	}
	return e.Append(dst, text[begin:], true, true)
}

func TestGoldenCases(t *testing.T) {
	for _, name := range []string{"gpt2", "roberta", "cl100k-hf"} {
		t.Run(name, func(t *testing.T) {
			f := loadFixture(t, name)
			texts := bufio.NewScanner(bytes.NewReader(readShared(t, "golden/cases.jsonl")))
			wants := bufio.NewScanner(bytes.NewReader(readShared(t, "golden/"+name+".cases.jsonl")))
			texts.Buffer(nil, 1<<24)
			wants.Buffer(nil, 1<<24)
			e := f.model.NewEncoder(0)
			cases := 0
			for texts.Scan() && wants.Scan() {
				var in struct {
					ID   int
					Text string
				}
				var want struct {
					ID  int
					IDs []uint32
				}
				if err := json.Unmarshal(texts.Bytes(), &in); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(wants.Bytes(), &want); err != nil {
					t.Fatal(err)
				}
				if in.ID != want.ID {
					t.Fatal("cases out of step")
				}
				cases++
				if got := f.encode(e, nil, []byte(in.Text)); !slices.Equal(got, want.IDs) {
					t.Errorf("case %d %q:\n got %v\nwant %v", in.ID, in.Text, got, want.IDs)
				}
			}
			if cases < 700 {
				t.Errorf("only %d cases", cases)
			}
		})
	}
}

var corpora = []struct{ key, path string }{
	{"wikitext-2-valid.txt", "corpora/wikitext-2/valid.txt"},
	{"wikitext-2-test.txt", "corpora/wikitext-2/test.txt"},
	{"prose-peps.txt", "corpora/prose/peps.txt"},
	{"multilingual-tldr.txt", "corpora/multilingual/tldr.txt"},
}

func TestGoldenCorpora(t *testing.T) {
	if testing.Short() {
		t.Skip("short: package tokenize hashes the same corpora")
	}
	for _, name := range []string{"gpt2", "roberta", "cl100k-hf"} {
		var golden map[string]json.RawMessage
		if err := json.Unmarshal(readShared(t, "golden/"+name+".corpora.json"), &golden); err != nil {
			t.Fatal(err)
		}
		f := loadFixture(t, name)
		for _, c := range corpora {
			var want struct {
				Documents, Tokens int
				SHA256            string
			}
			if err := json.Unmarshal(golden[c.key], &want); err != nil {
				t.Fatal(err)
			}
			t.Run(name+"/"+c.key, func(t *testing.T) {
				e := f.model.NewEncoder(0)
				sum, docs, tokens := sha256.New(), 0, 0
				var ids []uint32
				var raw []byte
				for line := range bytes.Lines(readShared(t, c.path)) {
					line = bytes.TrimSuffix(line, []byte("\n"))
					if !utf8.Valid(line) {
						t.Fatal("corpus is not UTF-8")
					}
					ids = f.encode(e, ids[:0], line)
					raw = binary.LittleEndian.AppendUint32(raw[:0], uint32(len(ids)))
					for _, id := range ids {
						raw = binary.LittleEndian.AppendUint32(raw, id)
					}
					sum.Write(raw)
					docs, tokens = docs+1, tokens+len(ids)
				}
				if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
					t.Errorf("digest %s, want %s (%d documents of %d, %d tokens of %d)", got, want.SHA256, docs,
						want.Documents, tokens, want.Tokens)
				}
			})
		}
	}
}
