package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

// wide is small with ids of four bytes, which leave no room for special tokens beside them.
var wide = sync.OnceValue(func() *tokenize.Tokenizer {
	v := must(builtin.Ranks("gpt2"))
	return must(tokenize.FromRanks(tokenize.Ranks{Name: "wide", Pattern: v.Split, Tokens: v.Tokens[:2000],
		Special: map[string]uint32{"<|endoftext|>": 70_000}}))
})

// oneByOne builds with workers that make no rows, so that the flusher takes each document and cuts it.
func oneByOne(t *testing.T, o option.Options) map[string][]byte {
	t.Helper()
	fsys := shardtest.New()
	o.FS = fsys
	o = o.WithDefaults()
	b := newBuild(o, nil)
	if err := b.prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range o.Workers {
		b.workers = append(b.workers, b.newWorker(b.Memory.CacheBytes))
	}
	if _, err := b.create(context.Background()); err != nil {
		t.Fatal(err)
	}
	return files(fsys)
}

// mixedRecords writes lines of JSON with texts or conversations, most of which are alike.
func mixedRecords(t *testing.T, chats bool, n int, rng *rand.Rand) string {
	t.Helper()
	var b strings.Builder
	words := func() string { return strings.Repeat("some more words ", rng.IntN(4)*rng.IntN(20)) }
	for i := range n {
		r := map[string]any{"id": i, "lang": []string{"en", "de"}[rng.IntN(8)/7]}
		if rng.IntN(60) == 0 {
			r[fmt.Sprint("odd", rng.IntN(3))] = 1
		}
		if r["text"] = fmt.Sprint(words(), i%200); chats {
			delete(r, "text")
			m := []any{map[string]string{"role": "user", "content": words()}}
			for range rng.IntN(30) / 10 {
				m = append(m, map[string]string{"role": "assistant", "content": words() + "yes"},
					map[string]string{"role": "user", "content": "and?"})
			}
			r["messages"] = m
		} else if rng.IntN(50) == 0 {
			r["text"] = "ill-formed \xff\xfe" + words()
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "records.jsonl")
	put(t, path, []byte(b.String()))
	return path
}

// TestBlocksAreOneByOne: documents that workers make rows of and the flusher takes together make the files that they
// make one by one.
func TestBlocksAreOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	lines, records, chats := writeCorpus(t, 1500, 1), mixedRecords(t, false, 1500, rng), mixedRecords(t, true, 800, rng)
	for i := range effort.Of(12, 100, 1000) {
		o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 128 << 20}}
		s := &o.Settings
		some := func(of ...int64) int64 { return of[rng.IntN(len(of))] }
		switch s.Sources = []string{lines}; rng.IntN(3) {
		case 0:
			s.Sources = []string{records, lines}[:1+rng.IntN(2)]
			if rng.IntN(2) == 0 {
				s.Sources, s.Where = []string{records}, []string{"lang=en"}
			}
		case 1:
			s.Sources, s.ChatTemplate = []string{chats}, "chatml"
		}
		if s.MaxLength = int(some(100, 512, 4000)); s.ChatTemplate == "" {
			s.MaxLength = int(some(8, 30, 100, 512))
		}
		if rng.IntN(3) == 0 && s.MaxLength > 8 {
			s.Pack = []pack.Policy{pack.BFD, pack.BFDSplit, pack.Wrapped}[rng.IntN(3)]
		}
		s.MaxExamples, s.MaxTokens, s.MaxBytes = some(0, 0, 0, 1, 200, 900), some(0, 0, 0, 100, 20_000), some(0, 0, 0, 30_000)
		if s.MaxValExamples = some(0, 0, 3, 200); rng.IntN(6) == 0 {
			s.ValSources = s.Sources[:1]
		}
		if rng.IntN(4) == 0 {
			s.Dedup = filter.Exact
		}
		if rng.IntN(3) == 0 {
			s.EOS = "<|endoftext|>"
		}
		if rng.IntN(3) == 0 {
			o.LoadedTokenizer = wide()
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			fsys := shardtest.New()
			want := oneByOne(t, o)
			o.FS = fsys
			mustBuild(t, o)
			wantSame(t, fmt.Sprintf("%+v", o.Settings), want, files(fsys))
		})
	}
}
