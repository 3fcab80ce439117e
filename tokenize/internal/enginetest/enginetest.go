// Package enginetest holds what the engines' tests share: the reference ids that every engine must
// produce, and benchmarks.
package enginetest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/refdata"
)

// Encoder is one goroutine's handle on an engine.
type Encoder interface {
	Append(dst []uint32, segment []byte, first, last bool) []uint32
}

// Tokenizer is an engine with the added tokens that are cut out of the text first.
type Tokenizer struct {
	New   func(cacheBytes int) Encoder
	Added []Added // all of one first byte, the longest first
}

// Added is an added token.
type Added struct {
	ID   uint32
	Text string
}

// Path finds a file of the shared test data, or skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	return refdata.Path(t, name)
}

// Read returns a file of the shared test data, or skips the test.
func Read(t testing.TB, name string) []byte {
	b, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Encode encodes text with the added tokens cut out, leftmost and longest first.
func (k Tokenizer) Encode(e Encoder, dst []uint32, text []byte) []uint32 {
	if len(k.Added) == 0 {
		return e.Append(dst, text, true, true)
	}
	head := k.Added[0].Text[0]
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
		dst = e.Append(dst, text[begin:i], true, true)
		dst = append(dst, a.ID)
		i += len(a.Text)
		begin = i
	}
	return e.Append(dst, text[begin:], true, true)
}

// match returns the added token that text begins with.
func (k Tokenizer) match(text []byte) (Added, bool) {
	if len(text) < 3 {
		return Added{}, false
	}
	for _, a := range k.Added {
		if a.Text[1] == text[1] && a.Text[2] == text[2] && bytes.HasPrefix(text, []byte(a.Text)) {
			return a, true
		}
	}
	return Added{}, false
}

// Cases checks every reference case of the named tokenizer.
func Cases(t *testing.T, name string, k Tokenizer) {
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
	e := k.New(0)
	n := 0
	lines(t, "golden/"+name+".cases.jsonl", func(line []byte) {
		var c struct {
			ID  int
			IDs []uint32
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		if got := k.Encode(e, nil, []byte(texts[c.ID])); !slices.Equal(got, c.IDs) {
			t.Errorf("case %d %q:\n got %v\nwant %v", c.ID, texts[c.ID], got, c.IDs)
		}
	})
	if n == 0 {
		t.Fatal("no cases")
	}
}

func lines(t testing.TB, name string, f func([]byte)) {
	sc := bufio.NewScanner(bytes.NewReader(Read(t, name)))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		f(sc.Bytes())
	}
}

// Corpora are the files whose ids have reference digests.
var Corpora = map[string]string{
	"multilingual-tldr.txt": "corpora/multilingual/tldr.txt",
	"prose-peps.txt":        "corpora/prose/peps.txt",
	"wikitext-2-test.txt":   "corpora/wikitext-2/test.txt",
	"wikitext-2-valid.txt":  "corpora/wikitext-2/valid.txt",
}

// Digests checks the reference digests of every corpus, with caches of several sizes.
func Digests(t *testing.T, name string, k Tokenizer) {
	if testing.Short() {
		t.Skip("short: package tokenize hashes the same corpora")
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(Read(t, "golden/"+name+".corpora.json"), &want); err != nil {
		t.Fatal(err)
	}
	for name, file := range Corpora {
		var w struct {
			Tokens int
			SHA256 string
		}
		if err := json.Unmarshal(want[name], &w); err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 1 << 18} {
			tokens, sum := digest(k, k.New(size), string(Read(t, file)))
			if tokens != w.Tokens || sum != w.SHA256 {
				t.Errorf("%s, cache %d: %d tokens, digest %s; want %d, %s", name, size, tokens, sum, w.Tokens, w.SHA256)
			}
		}
	}
}

// digest hashes the ids of every line as the golden files do.
func digest(k Tokenizer, e Encoder, text string) (int, string) {
	h := sha256.New()
	tokens := 0
	var ids []uint32
	var buf []byte
	for line := range strings.Lines(text) {
		ids = k.Encode(e, ids[:0], []byte(strings.TrimSuffix(line, "\n")))
		tokens += len(ids)
		buf = binary.LittleEndian.AppendUint32(buf[:0], uint32(len(ids)))
		for _, id := range ids {
			buf = binary.LittleEndian.AppendUint32(buf, id)
		}
		h.Write(buf)
	}
	return tokens, hex.EncodeToString(h.Sum(nil))
}

// Documents cuts text into runs of whole lines, at least 2 KiB each.
func Documents(text []byte) [][]byte {
	var docs [][]byte
	begin := 0
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		if i-begin >= 2<<10 {
			docs = append(docs, text[begin:i])
			begin = i
		}
	}
	if begin < len(text) {
		docs = append(docs, text[begin:])
	}
	return docs
}

// Speed measures the encoding of each corpus with a fresh Encoder (cold) and once more (warm), best
// of five, in MB of text per second of CPU time. It reports the time to make the Encoder
// separately.
func Speed(b *testing.B, k Tokenizer) {
	for _, c := range []struct{ name, files string }{
		{"wiki", "corpora/wikitext-2/test.txt corpora/wikitext-2/valid.txt"},
		{"peps", "corpora/prose/peps.txt"},
		{"tldr", "corpora/multilingual/tldr.txt"},
	} {
		var text []byte
		for _, f := range strings.Fields(c.files) {
			text = append(text, Read(b, f)...)
		}
		docs := Documents(text)
		b.Run(c.name, func(b *testing.B) {
			var cold, warm, made time.Duration
			ids := make([]uint32, 0, 1<<16)
			pass := func(e Encoder) time.Duration {
				start := CPUTime()
				for _, d := range docs {
					ids = k.Encode(e, ids[:0], d)
				}
				return CPUTime() - start
			}
			for b.Loop() {
				for i := range 5 {
					start := CPUTime()
					e := k.New(0)
					m := CPUTime() - start
					x, y := pass(e), pass(e)
					if i == 0 || x < cold {
						cold = x
					}
					if i == 0 || y < warm {
						warm = y
					}
					if i == 0 || m < made {
						made = m
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(text))/1e6/cold.Seconds(), "cold-MB/cpu-s")
			b.ReportMetric(float64(len(text))/1e6/warm.Seconds(), "warm-MB/cpu-s")
			b.ReportMetric(made.Seconds()*1e3, "new-ms")
		})
	}
}
