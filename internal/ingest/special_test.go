package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/refdata"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// word returns a tokenizer with one token for each word and the given post-processor.
func word(t *testing.T, postProcessor string) *tokenize.Tokenizer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	put(t, path, []byte(`{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
  {"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
  {"id": 1, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
 "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": `+postProcessor+`, "decoder": null,
 "model": {"type": "WordLevel", "vocab": {"<s>": 0, "</s>": 1, "[UNK]": 2, "[CLS]": 3, "[SEP]": 4, "a": 10, "b": 11, "c": 12, "d": 13, "x": 14, "y": 15}, "unk_token": "[UNK]"}}`))
	tok, err := tokenizers.Open(path, tokenizers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const (
	noPost   = "null"
	bertPost = `{"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]}`
	endPost  = `{"type": "BertProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}`
)

// rowsOf renders a split: ids, "*" after those that are trained on, "=> labels".
func rowsOf(t *testing.T, fsys shardfile.FS, dir string) (out []string) {
	t.Helper()
	m, err := shard.ReadManifest(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readRows(t, fsys, dir, splitTrain) {
		var b strings.Builder
		for j, id := range row.AppendInputIDs(nil) {
			fmt.Fprintf(&b, "%d", id)
			if row.LossMask != nil && row.LossMask[j] {
				b.WriteByte('*')
			}
			b.WriteByte(' ')
		}
		if m.Schema.Labels {
			b.WriteString("=> " + fmt.Sprint(row.AppendLabels(nil)))
		}
		out = append(out, strings.TrimSpace(b.String()))
	}
	return out
}

func TestEndsOfDocuments(t *testing.T) {
	for _, c := range []struct {
		name, post string
		o          option.Settings
		want       []string
		note       bool
	}{
		{"none", noPost, option.Settings{}, []string{"10 11 12", "13"}, true},
		{"eos", noPost, option.Settings{EOS: option.OwnToken}, []string{"10 11", "12 1", "13 1"}, false},
		{"eos by name", noPost, option.Settings{EOS: "</s>"}, []string{"10 11", "12 1", "13 1"}, false},
		{"eos by id", noPost, option.Settings{EOS: "1"}, []string{"10 11", "12 1", "13 1"}, false},
		{"bos", noPost, option.Settings{BOS: option.OwnToken}, []string{"0 10 11", "12", "0 13"}, true},
		{"both, truncated", noPost, option.Settings{BOS: "0", EOS: "1",
			Overflow: "truncate"}, []string{"0 10 1", "0 13 1"},
			false},
		{"post-processor", bertPost, option.Settings{}, []string{"3 10 11", "12 4", "3 13 4"}, false},
		{"each chunk", bertPost, option.Settings{SpecialTokens: "chunk"},
			[]string{"3 10 4", "3 11 4", "3 12 4", "3 13 4"},
			false},
		{"each chunk and eos", bertPost, option.Settings{SpecialTokens: "chunk", EOS: "1", MaxLength: 4},
			[]string{"3 10 11 4", "3 12 1 4", "3 13 1 4"}, false},
		{"the post-processor's own eos", endPost, option.Settings{EOS: option.OwnToken, BOS: option.OwnToken},
			[]string{"0 10 11", "12 1", "0 13 1"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "text.txt")
			put(t, path, []byte("a b c\n\nd\n"))
			o := option.Options{Settings: c.o}
			o.Out, o.LoadedTokenizer, o.Sources, o.FS = "data", word(t, c.post), []string{path}, shardtest.New()
			o.MaxLength = cmp.Or(o.MaxLength, 3)
			s := mustBuild(t, o)
			if got := rowsOf(t, o.FS, o.Out); !slices.Equal(got, c.want) {
				t.Errorf("rows %q, want %q", got, c.want)
			}
			if note := slices.ContainsFunc(fault.All(s.Notes, nil),
				func(n string) bool { return strings.Contains(n, "marks where a document ends") }); note != c.note {
				t.Errorf("notes: %q", s.Notes)
			}
		})
	}
}

func TestTokensThatAreNone(t *testing.T) {
	for _, c := range []struct {
		o    option.Options
		want []string
	}{
		{option.Options{Settings: option.Settings{EOS: "<eot>"}}, []string{"`eos` <eot>", "no such token", "</s> (1)"}},
		{option.Options{Settings: option.Settings{BOS: "16"}}, []string{"`bos` 16", "no token of that id", "to 15"}},
		{option.Options{Settings: option.Settings{EOS: "7"}}, []string{"`eos` 7", "no token of that id"}},
		{option.Options{Settings: option.Settings{EOS: "a"}},
			[]string{"`eos` a", "ordinary token", "(10)", "`eos` without a value adds </s> (1)"}},
		{option.Options{Settings: option.Settings{BOS: "11"}}, []string{"`bos` 11", `of "b"`, "`bos` without a value adds <s> (0)"}},
		{option.Options{Settings: option.Settings{EOS: "1", BOS: "0", MaxLength: 2}},
			[]string{"`max-length` 2", "take 2"}},
		{option.Options{Settings: option.Settings{SpecialTokens: "row"}}, []string{"`special-tokens` row",
			"document, chunk"}},
	} {
		c.o.LoadedTokenizer, c.o.Sources, c.o.FS = word(t, noPost), []string{writeCorpus(t, 5, 1)}, shardtest.New()
		var option *fault.Error
		_, err := Run(context.Background(), c.o)
		if !errors.As(err, &option) {
			t.Errorf("%q: %v", c.want, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v lacks %q", err, want)
			}
		}
	}
	// Without a role there is nothing to add by itself.
	_, err := Run(context.Background(), option.Options{Resources: option.Resources{FS: shardtest.New()},
		Settings: option.Settings{Tokenizer: refdata.Path(t, "tokenizers/bert-uncased"), EOS: option.OwnToken,
			Sources: []string{writeCorpus(t, 5, 1)}}})
	if err == nil || !strings.Contains(err.Error(), "no token of that role") ||
		!strings.Contains(err.Error(), "[SEP] (102)") {
		t.Errorf("a tokenizer without eos: %v", err)
	}
}

// TestSettingsOfOldBuilds: a build that uses none of the later options has the settings that it always had.
func TestSettingsOfOldBuilds(t *testing.T) {
	fsys := shardtest.New()
	mustBuild(t, option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: gpt2(), FS: fsys},
		Settings:  option.Settings{Sources: []string{"synth://wikitext?seed=1"}, MaxExamples: 5}})
	m, err := shard.ReadManifest(fsys, "data")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"sources":["synth://wikitext?seed=1"],"tokenizer":"gpt2","tokenizer-fingerprint":"` +
		gpt2().Fingerprint() + `","format":"auto","max-examples":5,"max-val-examples":0,` +
		`"max-bytes":0,"max-tokens":0,"max-length":512,"overflow":"chunk","shard-bytes":67108864,"on-bad-record":"fail"}`
	if got := string(m.Settings); got != want {
		t.Errorf("settings\n%s, want\n%s", got, want)
	}
}

const pairTemplate = `{% block prompt %}{{ q }}{% endblock %}{% block target %}{{ a }}{% endblock %}`

func TestCausalPairs(t *testing.T) {
	for _, c := range []struct {
		name, post, q, a string
		o                option.Settings
		want             []string
		left             int64 // examples left out for want of a target
	}{
		{"whole", noPost, "a b", "x y", option.Settings{}, []string{"10 11 14* 15*"}, 0},
		{"with its end", noPost, "a b", "x", option.Settings{EOS: option.OwnToken, BOS: option.OwnToken, MaxLength: 5},
			[]string{"0 10 11 14* 1*"}, 0},
		{"a post-processor's end", endPost, "a", "x", option.Settings{}, []string{"0 10 14* 1*"}, 0},
		{"a separator is not an end", bertPost, "a", "x", option.Settings{}, []string{"3 10 14* 4"}, 0},
		{"chunks", noPost, "a b c", "x y x", option.Settings{}, []string{"10 11 12 14*", "15* 14*"}, 0},
		{"a chunk of the prompt alone", noPost, "a b c d a b", "x y", option.Settings{}, []string{"10 11 14* 15*"}, 1},
		{"each chunk", endPost, "a b", "x y x", option.Settings{SpecialTokens: "chunk"},
			[]string{"0 14* 15* 1", "0 14* 1*"},
			1},
		{"truncated", noPost, "a b c", "x y", option.Settings{Overflow: "truncate"}, []string{"10 11 12 14*"}, 0},
		{"dropped", noPost, "a b c", "x y", option.Settings{Overflow: "drop"}, nil, 0},
		{"truncated before the target", noPost, "a b c d", "x y", option.Settings{Overflow: "truncate"}, nil, 1},
		{"a budget within the target", noPost, "a b", "x y", option.Settings{MaxTokens: 3}, []string{"10 11 14*"}, 0},
		{"a budget within the prompt", noPost, "a b", "x y", option.Settings{MaxTokens: 2}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			o := option.Options{Settings: c.o}
			o.Template = filepath.Join(dir, "pair.jinja")
			put(t, o.Template, []byte(pairTemplate))
			path := filepath.Join(dir, "pairs.jsonl")
			put(t, path, fmt.Appendf(nil, "{\"q\": %q, \"a\": %q}\n", c.q, c.a))
			o.Out, o.LoadedTokenizer, o.Sources, o.FS, o.CausalPairs = "data", word(t, c.post), []string{path},
				shardtest.New(), true
			o.MaxLength = cmp.Or(o.MaxLength, 4)
			s, err := Run(context.Background(), o)
			if c.want == nil {
				if err == nil {
					t.Errorf("a dataset without examples: %+v", s)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(t, o.FS, o.Out); !slices.Equal(got, c.want) {
				t.Errorf("rows %q, want %q", got, c.want)
			}
			note := slices.ContainsFunc(fault.All(s.Notes, nil), func(n string) bool {
				return strings.Contains(n,
					"no token of the target")
			})
			if s.WithoutTarget != c.left || note != (c.left > 0) {
				t.Errorf("%d examples left out, want %d; notes %q", s.WithoutTarget, c.left, s.Notes)
			}
		})
	}
}

// TestCausalPairContinuesItsPrompt: a tokenizer that puts a space before a text does not put one
// between prompt and target.
func TestCausalPairContinuesItsPrompt(t *testing.T) {
	tok, err := tokenizers.Open(refdata.Path(t, "tokenizers/llama2.model"), tokenizers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: tok, FS: shardtest.New()},
		Settings: option.Settings{Template: filepath.Join(dir, "pair.jinja"),
			Sources: []string{filepath.Join(dir, "p.jsonl")}, CausalPairs: true, EOS: option.OwnToken}}
	put(t, o.Template, []byte(pairTemplate))
	put(t, o.Sources[0], []byte(`{"q": "What is it?\n", "a": "A fox."}`))
	mustBuild(t, o)
	row := readRows(t, o.FS, o.Out, splitTrain)[0]
	if text := tok.AppendText(nil, row.AppendInputIDs(nil),
		tokenize.DecodeOptions{SkipSpecial: true}); !bytes.Equal(text, []byte("What is it?\nA fox.")) {
		t.Errorf("the row says %q", text)
	}
}

func TestPairsCarryTheirEnds(t *testing.T) {
	dir := t.TempDir()
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: word(t, noPost), FS: shardtest.New()},
		Settings: option.Settings{Template: filepath.Join(dir, "pair.jinja"),
			Sources: []string{filepath.Join(dir, "p.jsonl")}, EOS: option.OwnToken}}
	put(t, o.Template, []byte(pairTemplate))
	put(t, o.Sources[0], []byte(`{"q": "a b", "a": "x"}`))
	mustBuild(t, o)
	if got := rowsOf(t, o.FS, o.Out); !slices.Equal(got, []string{"10 11 1 => [14 1]"}) {
		t.Errorf("%q", got)
	}
	o.Template, o.CausalPairs, o.Overwrite = "", true, true
	var option *fault.Error
	if _, err := Run(context.Background(), o); !errors.As(err, &option) || option.Option != "causal-pairs" {
		t.Errorf("pairs without a target: %v", err)
	}
}

// TestLoneEnds: an end token is no row of its own, but in packed rows; texts lose nothing.
func TestLoneEnds(t *testing.T) {
	for _, c := range []struct {
		text string
		o    option.Settings
		want []string
	}{
		{"a b c d a b\n", option.Settings{}, []string{"10 11 12", "13 10", "11 1"}},
		{"a b c d\n", option.Settings{}, []string{"10 11 12", "13 1"}},
		{"a b c d\n\na b c\n", option.Settings{EOS: option.NoToken}, []string{"10 11 12", "13", "10 11 12"}},
		{"a b c\n", option.Settings{Pack: "wrapped"}, []string{"10 11 12", "1"}},
		{"a b c\n\na\n", option.Settings{Pack: "bfd_split"}, []string{"10 11 12", "10 1 1"}},
	} {
		path := filepath.Join(t.TempDir(), "text.txt")
		put(t, path, []byte(c.text))
		o := option.Options{Settings: c.o}
		o.Out, o.LoadedTokenizer, o.Sources, o.FS, o.MaxLength = "data", word(t, noPost), []string{path}, shardtest.New(), 3
		if o.EOS == "" {
			o.EOS = option.OwnToken
		}
		mustBuild(t, o)
		if got := rowsOf(t, o.FS, o.Out); !slices.Equal(got, c.want) {
			t.Errorf("%q: rows %q, want %q", c.text, got, c.want)
		}
	}
}
