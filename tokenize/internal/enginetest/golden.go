package enginetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// Case is a text and what the reference implementation makes of it.
type Case struct {
	ID      int
	Text    string
	IDs     []uint32
	Special []uint32 `json:"ids_special"` // ids with the tokens around a document, nil if not known
	Decoded *string
}

// minCases is far below the number of cases: fewer are a broken file.
const minCases = 700

// Cases returns every reference case of the named tokenizer.
func Cases(t testing.TB, name string) []Case {
	t.Helper()
	texts := readCases(t, "golden/cases.jsonl")
	cases := readCases(t, "golden/"+name+".cases.jsonl")
	if len(cases) != len(texts) || len(cases) < minCases {
		t.Fatalf("%d cases for %d texts", len(cases), len(texts))
	}
	for i := range cases {
		if cases[i].ID != texts[i].ID {
			t.Fatalf("case %d is for text %d", cases[i].ID, texts[i].ID)
		}
		cases[i].Text = texts[i].Text
	}
	return cases
}

func readCases(t testing.TB, file string) (cases []Case) {
	t.Helper()
	for line := range bytes.Lines(refdata.Read(t, file)) {
		var c Case
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// CheckCases compares what encode appends with the ids of every case of the named tokenizer.
func CheckCases(t *testing.T, name string, encode func(dst []uint32, text []byte) []uint32) {
	for _, c := range Cases(t, name) {
		if got := encode(nil, []byte(c.Text)); !slices.Equal(got, c.IDs) {
			t.Errorf("case %d %q:\n got %v\nwant %v", c.ID, c.Text, got, c.IDs)
		}
	}
}

// Corpora are the files whose ids have reference digests.
var Corpora = map[string]string{
	"multilingual-tldr.txt": "corpora/multilingual/tldr.txt",
	"prose-peps.txt":        "corpora/prose/peps.txt",
	"wikitext-2-test.txt":   "corpora/wikitext-2/test.txt",
	"wikitext-2-valid.txt":  "corpora/wikitext-2/valid.txt",
}

// CheckCorpora compares what encode appends with the named tokenizer's reference digest of each corpus.
func CheckCorpora(t *testing.T, name string, encode func(dst []uint32, text []byte) []uint32) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(refdata.Read(t, "golden/"+name+".corpora.json"), &all); err != nil {
		t.Fatal(err)
	}
	for i, corpus := range slices.Sorted(maps.Keys(Corpora)) {
		if testing.Short() && (i+len(name))%2 > 0 { // in quick tests each tokenizer takes half of them
			continue
		}
		var want struct {
			Tokens int
			SHA256 string
		}
		if err := json.Unmarshal(all[corpus], &want); err != nil {
			t.Fatal(err)
		}
		tokens, sum := Digest(refdata.Read(t, Corpora[corpus]), encode)
		if tokens != want.Tokens || sum != want.SHA256 {
			t.Errorf("%s: %d tokens, digest %s; want %d, %s", corpus, tokens, sum, want.Tokens, want.SHA256)
		}
	}
}

// Digest hashes the ids of every line as the golden files do.
func Digest(text []byte, encode func(dst []uint32, text []byte) []uint32) (tokens int, sum string) {
	h := sha256.New()
	var ids []uint32
	var buf []byte
	for line := range bytes.Lines(text) {
		ids = encode(ids[:0], bytes.TrimSuffix(line, []byte("\n")))
		tokens += len(ids)
		buf = binary.LittleEndian.AppendUint32(buf[:0], uint32(len(ids)))
		for _, id := range ids {
			buf = binary.LittleEndian.AppendUint32(buf, id)
		}
		h.Write(buf)
	}
	return tokens, hex.EncodeToString(h.Sum(nil))
}
