package shard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

var update = flag.Bool("update", false, "write testdata/datasets anew")

// words are the documents of testdata/datasets/words, by their split.
var words = map[string][]string{
	"train": {"the cat sat on the mat", "the dog saw the cat , and the cat saw the dog", "the cat ran"},
	"val":   {"the dog sat"},
}

// wordsRow is the most tokens of a row: one document has two rows.
const wordsRow = 8

// wordsTokenizer returns a tokenizer.json whose tokens are the words.
func wordsTokenizer(t *testing.T) []byte {
	t.Helper()
	all := strings.Fields(strings.Join(slices.Concat(words["train"], words["val"]), " "))
	slices.Sort(all)
	vocab := map[string]int{"[UNK]": 0}
	for _, w := range slices.Compact(all) {
		vocab[w] = len(vocab)
	}
	data, err := json.Marshal(map[string]any{
		"normalizer": map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
			"strip_accents": nil, "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"decoder":       map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"model": map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
			"max_input_chars_per_word": 100, "vocab": vocab}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestWordsFixture compares the dataset that the examples of this and other packages read with what is
// written now.
func TestWordsFixture(t *testing.T) {
	file := wordsTokenizer(t)
	tok, err := tokenize.Parse(file, tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fsys := shardtest.New()
	b, _, err := dataset.OpenBuilder(fsys, "/d", dataset.BuilderOptions{Schema: shard.Schema{VocabSize: tok.VocabSize()},
		Settings: json.RawMessage(`{"max-length":8}`)})
	if err != nil {
		t.Fatal(err)
	}
	document := int64(0)
	for _, split := range slices.Sorted(maps.Keys(words)) {
		for _, text := range words[split] {
			part := int32(0)
			for ids := range slices.Chunk(tok.Encode(text), wordsRow) {
				err = errors.Join(err, b.Row(split, &dataset.Example{InputIDs: ids, Document: document, Part: part}))
				part++
			}
			document++
		}
	}
	err = errors.Join(err, b.File(shardfile.TokenizerName, bytes.NewReader(file)))
	_, ferr := b.Finish(dataset.Provenance{Tokenizer: shard.TokenizerInfo{Name: "words", Fingerprint: tok.Fingerprint(),
		VocabSize: tok.VocabSize()},
		Sources: []shard.SourceInfo{{URI: "words.txt", Bytes: 92, Checksum: "xxh3-128:00"}}})
	if err := errors.Join(err, ferr); err != nil {
		t.Fatal(err)
	}
	sameAsFixture(t, fsys, filepath.Join("..", "testdata", "datasets", "words"))
}

// sameAsFixture compares the files of /d with those of a folder in testdata, which -update writes anew.
func sameAsFixture(t *testing.T, fsys *shardtest.FS, dir string) {
	t.Helper()
	if *update {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	for path, data := range fsys.Files() {
		name := filepath.Join(dir, filepath.Base(path))
		if *update {
			if err := os.WriteFile(name, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, data) {
			t.Errorf("%s: %v, or it differs; -update writes it anew", name, err)
		}
	}
}
