package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/option"
)

// TestOtherSettingsInWords: a folder with other sources or additions is described without JSON, and another
// tokenizer is named rather than the tokens that come with it.
func TestOtherSettingsInWords(t *testing.T) {
	dir := t.TempDir()
	a, b := lineFile(t, dir, "a.jsonl", "first one"), lineFile(t, dir, "b.jsonl", "second one")
	o := option.Options{Resources: option.Resources{LoadedTokenizer: small()},
		Out:      filepath.Join(dir, "data"),
		Settings: option.Settings{Sources: []string{a}, EOS: option.OwnToken}}
	mustBuild(t, o)
	refused := func(name string, o option.Options, want ...string) {
		t.Helper()
		_, err := Run(context.Background(), o)
		if err == nil {
			t.Fatalf("%s: built", name)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q", name, err, w)
			}
		}
		if strings.ContainsAny(err.Error(), "[]{}") || strings.Contains(err.Error(), "eos") {
			t.Errorf("%s: %v", name, err)
		}
	}
	both := o
	both.Sources = []string{a, b}
	refused("one source more", both, "a build of "+a+", not of "+a+", "+b, "`append` adds new sources")
	unlike := o
	unlike.Sources, unlike.EOS = []string{b}, ""
	refused("other sources and settings", unlike, "a build of "+a+", not of "+b)

	other := o
	other.LoadedTokenizer, other.Tokenizer = nil, "cl100k"
	refused("another tokenizer", other, "tokenizer = \"gpt2\", not \"cl100k\"")
	other.Sources, other.Append = []string{b}, true
	refused("an addition by another tokenizer", other, "built with `tokenizer` = \"gpt2\" (fingerprint ",
		"not \"cl100k\" (fingerprint ")

	added := o
	added.Sources, added.Append = []string{b}, true
	mustBuild(t, added)
	refused("the first build after an addition", o, "has additions since it was built: "+b, "`append`", "`overwrite`")
	refused("both after an addition", both, "has additions")
	var settings *dataset.SettingsError
	if _, err := Run(context.Background(), o); !errors.As(err, &settings) || settings.Name != "additions" {
		t.Errorf("%v is not an error about settings", err)
	}
}

// TestTruncationOfTheTokenizer: a block that cuts texts is reported only if rows are longer.
func TestTruncationOfTheTokenizer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokenizer.json")
	put(t, path, []byte(`{"version": "1.0", "truncation": {"direction": "Right", "max_length": 100, "stride": 0},
		"padding": {"strategy": {"Fixed": 100}}, "added_tokens": [], "model": {"type": "WordLevel", "vocab": {"a": 0, "u": 1},
		"unk_token": "u"}}`))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]int{50: 0, 100: 0, 101: 1} {
		o := option.Options{Settings: option.Settings{Tokenizer: path, MaxLength: length,
			Sources: []string{lineFile(t, dir, "a.jsonl", "a")}},
			Out: filepath.Join(t.TempDir(), "data")}
		s := mustBuild(t, o)
		if len(s.Warnings) != want || want > 0 &&
			!strings.Contains(s.Warnings[0].String(), "cuts texts at 100 tokens, without effect here") {
			t.Errorf("length %d: %q", length, s.Warnings)
		}
	}
}
