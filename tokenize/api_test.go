package tokenize

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// TestEncodeAndBatch: the short calls give the ids of an Encoder, from any number of goroutines.
func TestEncodeAndBatch(t *testing.T) {
	for _, file := range smallFiles {
		tok, err := Parse([]byte(file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		var want, special [][]uint32
		enc := tok.NewEncoder(EncoderOptions{})
		for i := range 100 {
			text := strings.Repeat(fmt.Sprintf("a ab b %d é漢 ", i), i)
			texts = append(texts, text)
			ids := enc.AppendTokens([]uint32{}, []byte(text))
			want = append(want, ids)
			special = append(special, slices.Concat(tok.Prefix(), ids, tok.Suffix()))
		}
		equal := func(got, want [][]uint32, what string) {
			t.Helper()
			if !slices.EqualFunc(got, want, func(a, b []uint32) bool { return slices.Equal(a, b) }) {
				t.Errorf("%.60s: %s differs", file, what)
			}
		}
		for _, workers := range []int{0, 1, 3, 50} {
			equal(tok.EncodeBatch(texts, BatchOptions{Workers: workers}), want, "EncodeBatch")
			equal(tok.EncodeBatch(texts, BatchOptions{Workers: workers, Specials: true}), special,
				"EncodeBatch with special tokens")
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i, text := range texts {
					if got := tok.Encode(text); !slices.Equal(got, want[i]) {
						t.Errorf("%.60s: Encode gives %d, want %d", file, got, want[i])
					}
					if got := tok.EncodeWithSpecials(text); !slices.Equal(got, special[i]) {
						t.Errorf("%.60s: EncodeWithSpecials gives %d, want %d", file, got, special[i])
					}
				}
			})
		}
		wg.Wait()
	}
	if got := (&Tokenizer{}).EncodeBatch(nil, BatchOptions{}); len(got) != 0 {
		t.Errorf("no texts give %d results", len(got))
	}
}

// TestLoadFS reads the same tokenizer from a folder and from a file system, with the files next to
// it, and returns its file.
func TestLoadFS(t *testing.T) {
	files := map[string]string{
		"bert/tokenizer.json": smallFiles[3], "bert/special_tokens_map.json": `{"mask_token": "a"}`,
		"ranks/x.tiktoken": string(rankFile(300)), "two/a.model": "x", "two/b.tiktoken": "y", "none/readme": "z",
	}
	dir, fsys := t.TempDir(), fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Load(filepath.Join(dir, "bert"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadFS(fsys, "bert/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	if a.Fingerprint() != b.Fingerprint() || a.Name() != "bert" || b.Name() != "bert" || a.Special() != b.Special() ||
		b.Special().MASK != 1 {
		t.Errorf("%s %s %+v and %s %s %+v", a.Name(), a.Fingerprint(), a.Special(), b.Name(), b.Fingerprint(),
			b.Special())
	}
	for _, tok := range []*Tokenizer{a, b} {
		name, data := tok.Details().File()
		if again, err := Parse(data, Options{}); err != nil || name != "tokenizer.json" || again.Fingerprint() != tok.Fingerprint() {
			t.Errorf("File gives %s of %d bytes", name, len(data))
		}
	}
	ranks, err := LoadWith(filepath.Join(dir, "ranks"), Options{Pattern: "gpt2"})
	if err != nil {
		t.Fatal(err)
	}
	if name, data := ranks.Details().File(); name != "tokenizer.tiktoken" ||
		string(data) != files["ranks/x.tiktoken"] || ranks.Name() != "x.tiktoken" {
		t.Errorf("File of %s gives %s of %d bytes", ranks.Name(), name, len(data))
	}
	if err := os.WriteFile(filepath.Join(dir, "bert/tokenizer.json"), []byte(smallFiles[2]), 0o644); err != nil {
		t.Fatal(err)
	}
	if name, data := a.Details().File(); data != nil {
		t.Errorf("File gives %s of %d bytes, which are another tokenizer's", name, len(data))
	}
	if _, _, err := a.AppendTokensOffsets(nil, nil, []byte("a")); !errors.Is(err, ErrFormat) {
		t.Errorf("offsets by a file that has changed: %v, want ErrFormat", err)
	}
	for name, word := range map[string]string{"two": "name one", "none": "it has no tokenizer.json",
		"absent": "absent"} {
		_, err := LoadFS(fsys, name)
		_, again := Load(filepath.Join(dir, name))
		for _, err := range []error{err, again} {
			var file *FileError
			if !errors.As(err, &file) || !strings.Contains(err.Error(), word) || !strings.Contains(file.File, name) {
				t.Errorf("%s: error %v, want a FileError with %q", name, err, word)
			}
		}
	}
}

// TestPlainEqualsEngines encodes every small file with its engine and with the plain models.
func TestPlainEqualsEngines(t *testing.T) {
	for _, file := range smallFiles {
		for _, text := range []string{"", "a", "ab a b  ab", "é漢 a<unk> b", " a ", "\xff a"} {
			checkPlain(t, []byte(file), []byte(text))
		}
	}
}
