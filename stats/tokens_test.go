package stats

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

func gpt2(t *testing.T) *tokenize.Tokenizer {
	t.Helper()
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// textRows tokenizes documents and cuts them to rows of at most most ids.
func textRows(tok *tokenize.Tokenizer, most int, documents ...string) []dataset.Example {
	enc := tok.NewEncoder(tokenize.EncoderOptions{})
	var rows []dataset.Example
	for i, text := range documents {
		ids := enc.AppendTokens(nil, []byte(text))
		for part := int32(0); len(ids) > 0; part++ {
			n := min(most, len(ids))
			rows = append(rows, dataset.Example{InputIDs: slices.Clone(ids[:n]), Document: int64(i), Part: part})
			ids = ids[n:]
		}
	}
	return rows
}

func with(tok *tokenize.Tokenizer) Options {
	return Options{OpenTokenizer: func() (*tokenize.Tokenizer, error) { return tok, nil }}
}

func TestBytesATokenAreThoseOfTheText(t *testing.T) {
	tok := gpt2(t)
	documents := []string{"The house of the sea.", " água — 水と光 🦜🦜", "line\nline\ttab  spaces", "हिन्दी \uFFFD done"}
	for _, most := range []int{1, 3, 512} {
		rows := textRows(tok, most, documents...)
		tokens, size := 0, len(strings.Join(documents, ""))
		for _, r := range rows {
			tokens += len(r.InputIDs)
		}
		s := run(t, datasetOf(t, shard.Schema{VocabSize: tok.VocabSize()}, rows), with(tok)).Splits[0]
		if want := float64(size) / float64(tokens); math.Abs(*s.BytesPerToken-want) > 1e-9 {
			t.Errorf("rows of %d: %v bytes a token, want %v", most, *s.BytesPerToken, want)
		}
		// The parrots and the Hindi are cut through by short rows; only the text's own U+FFFD counts.
		if *s.Replaced != 1 || s.ApproximateReplaced {
			t.Errorf("rows of %d: %d characters replaced, approximate %v; want 1", most, *s.Replaced,
				s.ApproximateReplaced)
		}
		if *s.Unknown != 0 || *s.ByteFallback != 0 {
			t.Errorf("rows of %d: %d unknown, %d fallback", most, *s.Unknown, *s.ByteFallback)
		}
	}
}

// scanned returns a dataset's split train and the figures of its ids.
func scanned(t *testing.T, d *shard.Dataset, tok *tokenize.Tokenizer) (*shard.Split, tokenFigures) {
	t.Helper()
	split, err := d.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := newScan(split)
	if err != nil {
		t.Fatal(err)
	}
	if err := sc.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return split, figuresOf(sc.ids, tok)
}

func TestReplacedIsEstimatedFromBlocks(t *testing.T) {
	tok := gpt2(t)
	documents := make([]string, 6400)
	for i := range documents {
		documents[i] = "a plain line of text"
		if i%4 == 0 {
			documents[i] = "broken \uFFFD here"
		}
	}
	d := datasetOf(t, shard.Schema{VocabSize: tok.VocabSize()}, textRows(tok, 512, documents...))
	split, f := scanned(t, d, tok)
	for limit, wantApproximate := range map[int64]bool{1 << 30: false, 3000: true} {
		n, approximate, err := countReplaced(t.Context(), split, tok, f, limit)
		if err != nil {
			t.Fatal(err)
		}
		if n != 1600 || approximate != wantApproximate {
			t.Errorf("limit %d: %d replaced, approximate %v; want 1600, %v", limit, n, approximate, wantApproximate)
		}
	}
}

func TestUnknownAndByteFallbackTokensAreCounted(t *testing.T) {
	words, err := tokenize.Parse([]byte(`{"version":"1.0","added_tokens":[{"id":0,"content":"[UNK]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
		"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel","unk_token":"[UNK]","vocab":{"[UNK]":0,"sea":1,"<0xE6>":2,"tree":3}}}`), tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := []dataset.Example{{InputIDs: []uint32{0, 1, 2, 0}, Document: 0}, {InputIDs: []uint32{2, 3, 0}, Document: 1}}
	s := run(t, datasetOf(t, shard.Schema{VocabSize: 4}, rows), with(words)).Splits[0]
	if s.Unknown == nil || *s.Unknown != 3 || *s.ByteFallback != 2 {
		t.Errorf("unknown %v, byte fallback %v; want 3, 2", s.Unknown, *s.ByteFallback)
	}
}

func TestPiecesAreTheTextOfTheirTokens(t *testing.T) {
	tok := gpt2(t)
	for _, text := range []string{"The house", "水と🦜 light", "a \uFFFD\uFFFD b", ""} {
		ids := tok.NewEncoder(tokenize.EncoderOptions{}).AppendTokens(nil, []byte(text))
		var joined strings.Builder
		var back []uint32
		for _, p := range pieces(tok, ids, nil) {
			joined.WriteString(p.Text)
			back = append(back, p.IDs...)
		}
		if joined.String() != text || !slices.Equal(back, ids) {
			t.Errorf("%q: pieces %q of ids %v, want %v", text, joined.String(), back, ids)
		}
	}
	got := pieces(tok, tok.NewEncoder(tokenize.EncoderOptions{}).AppendTokens(nil, []byte("light 🦜")), nil)
	if last := got[len(got)-1]; len(got) != 2 || last.Text != " 🦜" || len(last.IDs) < 2 {
		t.Errorf("%+v, want the parrot whole", got)
	}
}

func TestBytesATokenAreTheBuildsOwnWhereItCountedThem(t *testing.T) {
	for _, c := range []struct {
		settings string
		counters map[string]int64
		want     float64
	}{
		{`{"overflow":"chunk"}`, map[string]int64{"text_bytes": 300, "documents": 9}, 3},
		{`{"overflow":"truncate"}`, map[string]int64{"text_bytes": 300}, 2},
		{`{"overflow":"chunk"}`, map[string]int64{"text_bytes": 300, "cut_by_max_examples": 1}, 2},
		{`{"overflow":"chunk"}`, map[string]int64{"text_bytes": 300, "copies": 1}, 2},
		{`{}`, nil, 2},
	} {
		decoded := 2.0
		r := &Report{Splits: []Split{{Tokens: 100, BytesPerToken: &decoded}}}
		m := &shard.Manifest{Settings: []byte(c.settings), Counters: c.counters,
			Sources: []shard.SourceInfo{{URI: "x", Bytes: -1}}}
		r.useTextBytes(m)
		r.describeSources(m)
		if got := *r.Splits[0].BytesPerToken; got != c.want || *r.Sources[0].BytesPerToken != c.want {
			t.Errorf("%+v: %v bytes a token, of its source %v", c, got, *r.Sources[0].BytesPerToken)
		}
	}
}

// TestRunsOfSuspectsAreEnough compares the count from runs of suspect tokens with that of whole rows.
func TestRunsOfSuspectsAreEnough(t *testing.T) {
	bytesOf := `"<unk>":0,"▁a":1,"b":2,"\ufffd":3`
	for i, b := range []string{"41", "E6", "B0", "B4", "FF"} {
		bytesOf += fmt.Sprintf(`,"<0x%s>":%d`, b, 4+i)
	}
	fallback, err := tokenize.Parse([]byte(`{"version":"1.0","added_tokens":[{"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
		"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
		"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{`+bytesOf+`},"merges":[]}}`), tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, tok := range map[string]*tokenize.Tokenizer{"gpt2": gpt2(t), "fallback": fallback} {
		vocab := min(tok.VocabSize(), 9)
		var odd []uint32 // of gpt2, tokens that are parts of characters, and some that are not
		if name == "gpt2" {
			vocab = 300
			odd = []uint32{4210, 447, 237, 12520, 99, 220}
		}
		var rows []dataset.Example
		for i := range 500 {
			var ids []uint32
			for range 1 + rnd.IntN(30) {
				id := uint32(rnd.IntN(vocab))
				if len(odd) > 0 && rnd.IntN(2) == 0 {
					id = odd[rnd.IntN(len(odd))]
				}
				ids = append(ids, id)
			}
			rows = append(rows, dataset.Example{InputIDs: ids, Document: int64(i)})
		}
		split, f := scanned(t, datasetOf(t, shard.Schema{VocabSize: tok.VocabSize()}, rows), tok)
		found := 0
		for i, row := range rows {
			d := rowDecoder{split: split, tok: tok, kinds: f.kinds}
			got, err := d.block(int64(i), 1)
			if want := d.replacements(row.InputIDs); err != nil || got != want {
				t.Fatalf("%s: %d replaced in %d, want %d (%v)", name, got, row.InputIDs, want, err)
			}
			found += int(got)
		}
		if found < 100 {
			t.Errorf("%s: %d characters replaced in all rows", name, found)
		}
	}
}

func TestSamplesSayWhatCarriesLoss(t *testing.T) {
	rows := []dataset.Example{{InputIDs: []uint32{5, 6, 7}, LossMask: []bool{false, true, true}}}
	r := run(t, datasetOf(t, shard.Schema{VocabSize: 1000, LossMask: true}, rows), Options{})
	var loss []bool
	for _, p := range r.Splits[0].Samples[0].Pieces {
		loss = append(loss, p.Loss)
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, []*Report{r}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), ` loss" title=`); !slices.Equal(loss, rows[0].LossMask) || n != 2 {
		t.Errorf("loss on %v, %d pieces on the page", loss, n)
	}
}
