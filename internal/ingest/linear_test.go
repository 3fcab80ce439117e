package ingest

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/tokenize"
)

// A linearStage is a way through a build: a record around a text, and the options that lead there.
type linearStage struct {
	file, before, after string
	set                 func(*option.Options)
	tokenizer           string
}

// linearStages go through each stage that looks at text.
func linearStages(dir string) map[string]linearStage {
	with := func(set func(*option.Options)) linearStage {
		return linearStage{"a.jsonl", `{"text":"`, "\"}\n", set, ""}
	}
	stages := map[string]linearStage{
		"lines": with(nil), "array": {"a.json", `[{"text":"`, `"}]`, nil, ""},
		"csv":        {"a.csv", "id,text\n1,\"", "\"\n", nil, ""},
		"fields":     {"a.csv", "id,text\n1,", "\n", func(o *option.Options) { o.Where = []string{"id=1"} }, ""},
		"text":       {"a.txt", "", "\n", nil, ""},
		"document":   {"a.md", "", "", func(o *option.Options) { o.Format = source.Document }, ""},
		"wikitext":   {"a.md", "", "", func(o *option.Options) { o.Format = source.WikiText }, ""},
		"near":       with(func(o *option.Options) { o.Dedup = filter.Near }),
		"exact":      with(func(o *option.Options) { o.Dedup = filter.Exact }),
		"expression": with(func(o *option.Options) { o.NoMatch = []string{`(?i)(a|b)*c\s+d$`} }),
		"condition":  with(func(o *option.Options) { o.Where = []string{"text!=x"} }),
		"template": with(func(o *option.Options) {
			o.Template = filepath.Join(dir, "template")
		}),
		"map": with(func(o *option.Options) { o.Map = "cat" }),
		"chat": {"a.jsonl", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"`, "\"}]}\n",
			func(o *option.Options) { o.Format, o.ChatTemplate = source.Chat, filepath.Join(dir, "chat.jinja") }, ""},
	}
	for _, normalizer := range []string{`{"type":"NFC"}`, `{"type":"NFKD"}`,
		`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":true,"lowercase":true}`} {
		s := with(nil)
		s.tokenizer = normalizer
		stages[normalizer] = s
	}
	return stages
}

// TestTimeIsLinear: a byte of a text takes no more than twice as long as one of a text of a quarter of its length,
// whatever the text is and whichever stages it goes through. It compares CPU time of this process with itself.
func TestTimeIsLinear(t *testing.T) {
	effort.OneGoroutine(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "template"), []byte(`{{ text }}{{ text | length }}`))
	put(t, filepath.Join(dir, "chat.jinja"), []byte("{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}"))
	units := []string{"\xff", `\n`, "a", "\u0316\u0301", `\"`, `\ud800`, " ", "\n", `""`, ",", "= a =\n", "\xe2\x82", `\u0301`, "{", "[[],"}
	units = units[:effort.Of(4, len(units), len(units))]
	stages := linearStages(dir)
	for i, name := range slices.Sorted(maps.Keys(stages)) {
		s := stages[name]
		for j, unit := range units {
			if testing.Short() && (i+j)%2 > 0 { // each stage with half of them
				continue
			}
			measure := func(n int) time.Duration {
				put(t, filepath.Join(dir, s.file), []byte(s.before+strings.Repeat(unit, n/len(unit))+s.after))
				return cpuOfBuild(t, s, dir, unit == "a")
			}
			const size = 256 << 10
			quarter, whole := measure(size/4), measure(size)
			for range 2 { // what else the machine does takes from its caches
				if whole <= max(8*quarter, 60*time.Millisecond) {
					break
				}
				quarter, whole = max(quarter, measure(size/4)), min(whole, measure(size))
			}
			if whole > max(8*quarter, 60*time.Millisecond) {
				t.Errorf("%s, %q: %v of CPU for %d bytes, %v for %d", name, unit, quarter, size/4, whole, size)
			}
		}
	}
}

// cpuOfBuild builds the file of a stage and returns the CPU time. Bad records are as good as others
// here, unless the text is a plain one.
func cpuOfBuild(t *testing.T, s linearStage, dir string, plain bool) time.Duration {
	t.Helper()
	o := option.Options{Out: "data", Resources: option.Resources{FS: shardtest.New(), LoadedTokenizer: small(), Workers: 1},
		Settings: option.Settings{Sources: []string{filepath.Join(dir, s.file)}, MaxLength: 1 << 20,
			OnBadRecord: option.SkipBadRecord}}
	if s.tokenizer != "" {
		o.LoadedTokenizer = normalizing(t, s.tokenizer)
	}
	if s.set != nil {
		s.set(&o)
	}
	began := cputime.Process()
	_, err := Run(t.Context(), o)
	took := cputime.Process() - began
	if err != nil && plain {
		t.Fatal(err)
	}
	return took
}

// normalizing returns a tokenizer of words with a normalizer.
func normalizing(t *testing.T, normalizer string) *tokenize.Tokenizer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	put(t, file, bytes.ReplaceAll([]byte(`{"version":"1.0","added_tokens":[],"normalizer":NORMALIZER,
		"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":null,"decoder":null,"model":{"type":"WordPiece",
		"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1}}}`),
		[]byte("NORMALIZER"), []byte(normalizer)))
	tok, err := tokenize.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
