package source

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
)

func lz4ed(t testing.TB, text string, o ...lz4.Option) string {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	if err := w.Apply(o...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func snappied(text string) string {
	var b bytes.Buffer
	w := snappy.NewBufferedWriter(&b)
	w.Write([]byte(text)) // into memory
	w.Close()
	return b.String()
}

// xzed compresses with the xz program, the only writer there is.
func xzed(t testing.TB, text string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("xz")
	if err != nil {
		t.Skip("there is no xz here")
	}
	cmd := exec.Command(path, append([]string{"-c"}, args...)...)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Every compression gives the text, from a file of any name, from a pipe, in several frames, with
// zeros after it; cut off anywhere or changed anywhere it is an error or the same text.
func TestCompressions(t *testing.T) {
	text := numbered(800)
	half := len(text) / 2
	for name, c := range map[string]struct {
		data    string
		padding bool // zeros after it are padding
		open    bool // it has no end mark
	}{
		"lz4": {lz4ed(t, text, lz4.ChecksumOption(true)), true, false},
		"lz4 blocks": {lz4ed(t, text, lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true),
			lz4.ChecksumOption(true)), true, false},
		"lz4 twice": {lz4ed(t, text[:half], lz4.ChecksumOption(true)) +
			lz4ed(t, text[half:], lz4.ChecksumOption(true)), true, false},
		"lz4 old":  {lz4ed(t, text, lz4.LegacyOption(true)), false, true},
		"snappy":   {snappied(text), false, true},
		"xz":       {xzed(t, text), true, false},
		"xz twice": {xzed(t, text[:half]) + xzed(t, text[half:], "-1", "--check=sha256"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			file := write(t, dir, "wrong.gz", c.data)
			if got := dataOf(readAll(t, Options{Args: []string{file}})); !slices.Equal(got, want) {
				t.Fatalf("%d lines of %d", len(got), len(want))
			}
			if got := dataOf(framed(t, c.data, Options{})); !slices.Equal(got, want) {
				t.Fatalf("from a pipe: %d lines of %d", len(got), len(want))
			}
			try := func(what, data string) error {
				set, err := Open(t.Context(), Options{Args: []string{"-"}, Places: Places{Stdin: strings.NewReader(data)},
					Format: Text})
				if err != nil {
					return err
				}
				got, err := readFrom(t, set, Position{})
				if err == nil && !slices.Equal(dataOf(got), want) && !c.open {
					t.Fatalf("%s: %d lines of %d and no error", what, len(got), len(want))
				}
				return err
			}
			for n := 32; n < len(c.data); n += max(1, len(c.data)/effort.Of(11, 31, 31)) {
				err := try(fmt.Sprint("cut at ", n), c.data[:n])
				if err != nil && !errors.Is(err, cause.Truncated) && !errors.Is(err, cause.Corrupt) &&
					!errors.Is(err, cause.Binary) &&
					!errors.Is(err, cause.NoDocuments) {
					t.Errorf("cut at %d: %v", n, err)
				}
				flipped := []byte(c.data)
				flipped[n] ^= 0x24
				if !c.open {
					_ = try(fmt.Sprint("changed at ", n), string(flipped))
				}
			}
			if c.padding {
				if err := try("zeros", c.data+strings.Repeat("\x00", 64)); err != nil {
					t.Error(err)
				}
				if err := try("garbage", c.data+"garbage garbage"); !errors.Is(err, cause.Corrupt) {
					t.Errorf("garbage after it: %v", err)
				}
			}
		})
	}
}

// A dictionary above the default is part of what the input takes.
func TestXZDictionary(t *testing.T) {
	data := xzed(t, numbered(100), "-9")
	if d := decompress.XZDictionary([]byte(data)); d != 64<<20 {
		t.Fatalf("dictionary %d", d)
	}
	set := openSet(t, Options{Args: []string{write(t, t.TempDir(), "a.xz", data)}})
	if n := set.MemoryBytes(); n < 64<<20 {
		t.Errorf("MemoryBytes is %d", n)
	}
}

func formatOfName(name string) Format {
	f := detectFormat(name, []byte("[{"), true, nil)
	return f
}

// Text in UTF-16 gives what its UTF-8 gives, in every text format, whatever is around it.
func TestUTF16(t *testing.T) {
	effort.RacedElsewhere(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "héllo\n日本 𝄞 text\n", "a.csv": "id,text\n1,\"é\n𝄞\"\n",
		"a.jsonl": "{\"text\":\"é𝄞\"}\n{\"text\":\"b\"}\n",
		"a.json":  "[{\"text\":\"é\"}]", "long.txt": strings.Repeat("𝄞é\n", 40_000)} {
		want := dataOf(readAll(t, Options{Args: []string{write(t, dir, name, text)}}))
		for order, encode := range map[string]func(u uint16) []byte{"le": func(u uint16) []byte {
			return []byte{byte(u),
				byte(u >> 8)}
		},
			"be": func(u uint16) []byte { return []byte{byte(u >> 8), byte(u)} }} {
			var b []byte
			for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
				b = append(b, encode(u)...)
			}
			for form, data := range map[string]string{name: string(b), name + ".gz": gzipped(string(b))} {
				all := readAll(t, Options{Args: []string{write(t, dir, order+form, data)}})
				if got := dataOf(all); !slices.Equal(got, want) {
					t.Errorf("%s of %s: %d records of %d", order, form, len(got), len(want))
				}
			}
			if got := dataOf(framed(t, string(b), Options{Format: formatOfName(name)})); !slices.Equal(got, want) {
				t.Errorf("%s of %s from a pipe: %d records of %d", order, name, len(got), len(want))
			}
		}
	}
	lone := "\xff\xfea\x00\x00\xd8b\x00\n\x00"
	if got := framed(t, lone, Options{Format: Text}); len(got) != 1 || got[0].data != "a\xffb" {
		t.Errorf("a lone surrogate: %q", dataOf(got))
	}
}
