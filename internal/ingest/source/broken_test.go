package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// breakBegin changes the first bytes of a file, by which it is recognized.
func breakBegin(data string) string {
	b := []byte(data)
	for i := range min(4, len(b)) {
		b[i] ^= 0x5a
	}
	return string(b)
}

// A file whose first bytes are damaged is known by its name: it is an error, alone and in a folder,
// and SkipDamaged continues after it.
func TestBrokenBegin(t *testing.T) {
	tried := 0
	for name, data := range packed(t) {
		broken := breakBegin(data)
		_, known := namedKinds[filepath.Ext(name)]
		if !known || checkText([]byte(broken[:min(len(broken), sniffBytes)])) == nil {
			continue
		}
		tried++
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, dir, name, broken)
			last := write(t, dir, "zz.jsonl", "{\"text\": \"after\"}\n")
			for _, args := range [][]string{{path}, {dir}} {
				_, err := Open(t.Context(), Options{Args: args, Framing: Framing{TextField: "text"}})
				var input *cause.InputError
				if !errors.As(err, &input) || !input.Damaged || !errors.Is(err, cause.Corrupt) ||
					!strings.Contains(err.Error(), "named like ") {
					t.Errorf("%v: %v", args, err)
				}
			}
			for _, args := range [][]string{{path, last}, {dir}} {
				set := openSet(t, Options{Args: args, Framing: Framing{TextField: "text"}, SkipDamaged: true})
				records, err := readFrom(t, set, Position{})
				set.Close()
				if err != nil || len(records) < 2 || records[0].Err == nil ||
					!strings.Contains(records[len(records)-1].data, "after") {
					t.Errorf("%v: %d records, %v", args, len(records), err)
				}
			}
		})
	}
	if tried < 12 {
		t.Errorf("only %d files were tried", tried)
	}
}

// The content decides where it can: text is read under any name, and what is known not to be
// readable is called by its name.
func TestMisnamedFiles(t *testing.T) {
	dir := t.TempDir()
	utf16 := "\xff\xfet\x00w\x00o\x00\n\x00"
	for name, c := range map[string]struct{ data, want string }{
		"text.gz": {"one\n", "one"}, "wide.parquet": {utf16, "two"}, "text.zip": {"PARENTS\n", "PARENTS"},
		"failed.parquet": {"Entry not found", "Entry not found"},
		"packed.parquet": {gzipped("three\n"), "three"}, "byte": {"\xff", "\xff"}, "table.zst": {"FEA1 is a name\n", "FEA1 is a name"},
	} {
		set := openSet(t, Options{Args: []string{write(t, dir, name, c.data)}})
		noted := strings.Contains(fmt.Sprint(set.Notes()), "whatever their names say: 1 input, such as "+dir)
		if want := slices.Contains([]string{"text.gz", "text.zip", "table.zst", "failed.parquet"}, name); noted != want { // not of UTF-16 and gzip, nor of unnamed text
			t.Errorf("%s: noted %v, want %v", name, noted, want)
		}
		records, err := readFrom(t, set, Position{})
		set.Close()
		if err != nil || len(records) != 1 || records[0].data != c.want {
			t.Errorf("%s: %v, %v", name, records, err)
		}
	}
	noise := strings.Repeat("\x00\x01\x02", 100)
	for name, c := range map[string]struct {
		data, want string
		kind       error
	}{
		"a.parquet":    {"PARE" + noise + "PARE", "encrypted parquet", cause.Unsupported},
		"a.feather":    {"FEA1" + noise + "FEA1", "Feather file of version 1", cause.Unsupported},
		"a.snappy":     {noise, "not text", cause.Binary},
		"picture.gz":   {"\x89PNG\r\n\x1a\n" + noise, "an image", cause.Unsupported},
		"nothing.lz4":  {noise, "named like lz4 data", cause.Corrupt},
		"unknown.data": {noise, "not text", cause.Binary},
		"empty.gz":     {"", "named like gzip data, but it ends after 0 bytes", cause.Truncated},
		"empty.pq":     {"", "named like a parquet file, but it ends after 0 bytes", cause.Truncated},
		"cut.zst":      {"\x28\xb5\x2f", "named like zstd data, but it ends after 3 bytes", cause.Truncated},
		"cut.xz":       {"\xfd7zXZ", "named like xz data, but it ends after 5 bytes", cause.Truncated},
		"cut.bz2":      {"BZh", "named like bzip2 data, but it ends after 3 bytes", cause.Truncated},
		"cut.parquet":  {"PAR1", "named like a parquet file, but it ends after 4 bytes", cause.Truncated},
		"cut":          {"\x28\xb5\x2f", "this is the beginning of compressed data, 3 bytes", cause.Truncated},
	} {
		_, err := Open(t.Context(), Options{Args: []string{write(t, dir, name, c.data)}})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A remote file of columns whose begin nobody looked at is compared with it where damage is skipped.
func TestParquetBegin(t *testing.T) {
	names, err := filepath.Glob("columnar/testdata/*.parquet")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, t.TempDir(), "a.parquet", breakBegin(string(data)))
	if _, err := Open(t.Context(), Options{Args: []string{path}, Format: Parquet, Framing: Framing{TextField: "text"}}); !errors.Is(err,
		cause.Corrupt) {
		t.Error(err)
	}
	if records, err := skipDamaged(t, path, 0); err != nil || len(records) != 1 || records[0].Err == nil {
		t.Errorf("%v, %v", records, err)
	}
}

// TestCheckText: what is text is decided by each byte, wherever it lies in a word.
func TestCheckText(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for n := range 400 {
		text := make([]byte, n)
		controls := 0
		for i := range text {
			if text[i] = " ~\x80\xff\x81\xa0\n\x1f"[rnd.IntN(8)]; rnd.IntN(20) == 0 {
				text[i] = byte(rnd.IntN(256))
			}
			controls += int(isControl[text[i]])
		}
		if got, want := checkText(text) == nil, controls < 2 || 20*controls <= n; got != want {
			t.Fatalf("%q is text: %v, want %v", text, got, want)
		}
		for b := range 256 {
			text := []byte(strings.Repeat("ab", 8))
			text[n%16], text[(n+5)%16] = byte(b), byte(b)
			if got, want := checkText(text) == nil, isControl[b] == 0; got != want {
				t.Fatalf("%q is text: %v, want %v", text, got, want)
			}
		}
	}
}
