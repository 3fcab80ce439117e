package source

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func write(t testing.TB, dir, name, data string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func zstded(t testing.TB, text string, window int) string {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

// bzipped is "hello\nworld\n" as bzip2 writes it.
func bzipped(t testing.TB) string {
	data, err := hex.DecodeString("425a68393141592653596b5fb1dd00000241800010064490802000310c0821a369080723ae878bb9229c284835afd8ee80")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// numbered returns text that compresses badly enough to fill several blocks.
func numbered(lines int) string {
	var b strings.Builder
	r := rand.NewPCG(7, 7)
	for i := range lines {
		fmt.Fprintf(&b, "line %d %x\n", i, r.Uint64())
	}
	return b.String()
}

func TestOpenExpands(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.txt", "a/2.txt", "a/1.jsonl", "a/deep/x.csv", ".hidden/y.txt", "_SUCCESS",
		"README.md", "a/.z", "a/dataset_info.json", "c.txt.sha256", "SHA256SUMS", "a/z.tmp"} {
		write(t, dir, name, "{\"text\": 1}\n")
	}
	if err := os.Symlink(filepath.Join(dir, "b.txt"), filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"."}, "a/1.jsonl a/2.txt a/deep/x.csv b.txt link.txt"},
		{[]string{"*.txt"}, "b.txt link.txt"},
		{[]string{"**/*.txt"}, "a/2.txt b.txt link.txt"},
		{[]string{"a/**/x.*"}, "a/deep/x.csv"},
		{[]string{"b.txt", "a", "b.txt"}, "b.txt a/1.jsonl a/2.txt a/deep/x.csv b.txt"},
		{[]string{"?.txt", "synth://recipes"}, "b.txt synth://recipes"},
		{[]string{".hidden/y.txt"}, ".hidden/y.txt"},
	} {
		var args []string
		for _, a := range c.args {
			if !strings.Contains(a, "://") {
				a = filepath.Join(dir, a)
			}
			args = append(args, a)
		}
		var got []string
		for _, in := range inputsOf(t, openSet(t, Options{Args: args})) {
			got = append(got, strings.TrimPrefix(in.URI, dir+"/"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v: %s, want %s", c.args, s, c.want)
		}
	}
	if in := inputsOf(t, openSet(t, Options{Args: []string{"file://" + dir + "/b.txt"}}))[0]; in.Size != 12 ||
		in.ModTime.IsZero() {
		t.Errorf("file address: %+v", in)
	}
}

func TestDetection(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data        string
		format      Format
		compression decompress.Compression
	}{
		"plain":            {"hello\nworld\n", Text, decompress.Plain},
		"wiki.txt":         {" \n = A = \n \n text\n", WikiText, decompress.Plain},
		"wiki.train.raw":   {" \n = A = \n \n text\n", WikiText, decompress.Plain},
		"nowiki.txt":       {"a = b = c\n\n", Text, decompress.Plain},
		"x.jsonl":          {"garbage", JSONL, decompress.Plain},
		"x.ndjson.gz":      {gzipped("{}"), JSONL, decompress.Gzip},
		"lines":            {"{\"a\":1}\n{}\n", JSONL, decompress.Plain},
		"bom":              {"\ufeff{\"a\":1}\n{}\n", JSONL, decompress.Plain},
		"notjson":          {"{a}\n{}\n", Text, decompress.Plain},
		"a.csv":            {"a,b\n1,2\n", CSV, decompress.Plain},
		"a.tsv":            {"a\tb\n1\t2\n", CSV, decompress.Plain},
		"r.csv":            {",title,ingredients,directions,link,source,NER\n", Recipes, decompress.Plain},
		"recipes":          {",title,ingredients,directions,link,source,NER\n", Recipes, decompress.Plain},
		"text.zst":         {zstded(t, "hello\n", 1<<10), Text, decompress.Zstd},
		"misnamed.txt":     {gzipped("\n = A = \n\n"), WikiText, decompress.Gzip},
		"b.bz2":            {bzipped(t), Text, decompress.Bzip2},
		"empty.zst.but.no": {"BZhello\n", Text, decompress.Plain},
	} {
		in := inputsOf(t, openSet(t, Options{Args: []string{write(t, dir, name, c.data)}}))[0]
		if in.Format != c.format || in.Compression != c.compression {
			t.Errorf("%s: %s, %q; want %s, %q", name, in.Format, in.Compression, c.format, c.compression)
		}
	}
}

// Each bad input has an error of its own, which names the file and says what to do.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	text := numbered(40_000)
	zipped, zstd1 := gzipped(text), zstded(t, text, 1<<20)
	flip := func(s string, at int) string { return s[:at] + string(s[at]^0x55) + s[at+1:] }
	for name, c := range map[string]struct {
		data string
		want error
		says string
	}{
		"empty.txt":     {"", cause.NoDocuments, "empty"},
		"blank.txt":     {" \n\n\t\n", cause.NoDocuments, "blank"},
		"header.csv":    {"a,b\n", cause.NoDocuments, "no documents"},
		"binary.txt":    {"\x01\x02\x00\x00abcdef\x00", cause.Binary, "zero byte"},
		"program":       {"\x7fELF\x02\x01\x00\x00", cause.Unsupported, "a program"},
		"controls":      {strings.Repeat("ab\x01\x02", 99), cause.Binary, "control characters"},
		"utf16.txt":     {"\xff\xfea\x00b\x00c", cause.Truncated, "UTF-16"},
		"utf32.txt":     {"\xff\xfe\x00\x00a\x00\x00\x00", cause.Unsupported, "iconv"},
		"a.parquet":     {"PAR1\x15xxxxxxxxxx", cause.Corrupt, "without its footer"},
		"a.xz":          {"\xfd7zXZ\x00", cause.Truncated, "xz"},
		"a.zip":         {"PK\x03\x04", cause.Truncated, "directory"},
		"a.json":        {"[{}{}]", cause.Malformed, "after an element"},
		"truncated.gz":  {zipped[:len(zipped)/2], cause.Truncated, "copy the file again"},
		"noend.gz":      {zipped[:len(zipped)-5], cause.Truncated, "gzip"},
		"header.gz":     {zipped[:5], cause.Truncated, "gzip"},
		"corrupt.gz":    {flip(zipped, len(zipped)-6), cause.Corrupt, "gzip"},
		"truncated.zst": {zstd1[:len(zstd1)/2], cause.Truncated, "zstd"},
		"corrupt.zst":   {flip(zstd1, len(zstd1)-2), cause.Corrupt, "zstd"},
		"corrupt2.zst":  {flip(zstd1, 5) + "x", cause.Corrupt, "zstd"},
		"window.zst": {zstded(t, "x\n", 1<<20) + zstded(t, strings.Repeat("x", 9<<20), 16<<20), cause.Unsupported,
			"--long"},
		"forged.zst":      {"\x28\xb5\x2f\xfd\x00\xff", cause.Unsupported, "2GiB"},
		"truncated.bz2":   {bzipped(t)[:20], cause.Truncated, "bzip2"},
		"unterminated.gz": {gzipped("ab\n") + "garbage garbage", cause.Corrupt, "gzip"},
		"table.parquet.gz": {gzipped("PAR1\x15\x04\x15\x10\x15\x14\x4c\x15\x02"), cause.Unsupported,
			"parquet data within gzip data; decompress it"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, dir, name, c.data)
			set, err := Open(context.Background(), Options{Args: []string{file}})
			if err == nil {
				_, err = readFrom(t, set, Position{})
			}
			var located *cause.InputError
			if !errors.Is(err, c.want) || !errors.As(err, &located) || located.URI != file ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %v, saying %q", err, c.want, c.says)
			}
		})
	}
}

func TestBadArguments(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want error
	}{
		{nil, cause.Usage},
		{[]string{""}, cause.Usage},
		{[]string{filepath.Join(dir, "missing.txt")}, fs.ErrNotExist},
		{[]string{filepath.Join(dir, "*.txt")}, fs.ErrNotExist},
		{[]string{filepath.Join(dir, "[")}, cause.Usage},
		{[]string{dir}, cause.NoDocuments},
		{[]string{"ftp://host/x"}, cause.Unsupported},
		{[]string{"abfs://container/x"}, cause.Unsupported},
		{[]string{"s3://"}, cause.Usage},
		{[]string{"gs://user:password@bucket/x"}, cause.Usage},
		{[]string{"az://container@account/x"}, cause.Usage},
		{[]string{"-"}, cause.Usage},
		{[]string{"synth://poems"}, cause.Usage},
		{[]string{"synth://wikitext?seed=x"}, cause.Usage},
		{[]string{"synth://wikitext?seeds=1"}, cause.Usage},
		{[]string{"synth://wikitext?bytes=-1"}, cause.Usage},
		{[]string{"synth://wikitext?docs=1&docs=2"}, cause.Usage},
		{[]string{"synth://wikitext/x"}, cause.Usage},
	} {
		if _, err := Open(context.Background(), Options{Args: c.args}); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.args, err, c.want)
		}
	}
	if _, err := Open(context.Background(), Options{Args: []string{"-", "-"},
		Places: Places{Stdin: strings.NewReader("a")}}); !errors.Is(err, cause.Usage) {
		t.Errorf("stdin twice: %v", err)
	}
	if _, err := ParseFormat("parkett"); !errors.Is(err, cause.Usage) {
		t.Error(err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(canceled, Options{Args: []string{write(t, dir, "a", "a")}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An empty file among others is fine.
func TestEmptyAmongOthers(t *testing.T) {
	dir := t.TempDir()
	records := readAll(t, Options{Args: []string{write(t, dir, "a", ""), write(t, dir, "b", "x\n"),
		write(t, dir, "c", "")}})
	if len(records) != 1 || records[0].Input != 1 || records[0].Ordinal != 0 {
		t.Errorf("%+v", records)
	}
}

func TestReadErrorMidway(t *testing.T) {
	broken := errors.New("input/output error")
	text := numbered(20_000)
	set := openSet(t, Options{Args: []string{"-"}, Places: Places{Stdin: io.MultiReader(strings.NewReader(text+"half a li"),
		iotest.ErrReader(broken))}})
	records, err := readFrom(t, set, Position{})
	var located *cause.InputError
	if !errors.Is(err, broken) || !errors.As(err, &located) || located.Offset != int64(len(text)) {
		t.Fatalf("%v", err)
	}
	if len(records) != 20_000 {
		t.Errorf("%d records before the error; half a line must not come", len(records))
	}
}

func TestStdinOnce(t *testing.T) {
	set := openSet(t, Options{Args: []string{"-"}, Places: Places{Stdin: strings.NewReader("a\nb\n")}})
	if records, err := readFrom(t, set, Position{}); err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	if _, err := readFrom(t, set, Position{}); !errors.Is(err, cause.Usage) {
		t.Error(err)
	}
}

// Every compression gives the plain file's records, and positions in them work.
func TestCompressionAndResuming(t *testing.T) {
	dir := t.TempDir()
	n := effort.Of(6_000, 30_000, 30_000)
	text := numbered(n)
	half := len(text) / 2
	want := readAll(t, Options{Args: []string{write(t, dir, "plain", text)}})
	sum := want[len(want)-1].next.Sum
	for name, data := range map[string]string{
		"plain": text, "gz": gzipped(text), "gz.members": gzipped(text[:half]) + gzipped(text[half:]),
		"zst": zstded(t, text, 1<<20), "zst.frames": zstded(t, text[:half], 1<<10) +
			"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstded(t, text[half:], 1<<20),
	} {
		set := openSet(t, Options{Args: []string{write(t, dir, name, data)}})
		got, err := readFrom(t, set, Position{})
		if err != nil {
			t.Fatal(name, err)
		}
		if a, b := outcome(want, nil), outcome(got, nil); !slices.Equal(a, b) {
			t.Fatalf("%s: %s", name, cmp.Diff(a, b))
		}
		if got[len(got)-1].next.Sum != sum {
			t.Errorf("%s: the checksum is over text, not over how it is stored", name)
		}
		for _, i := range []int{0, 1, n/2 - 1, n - 2, n - 1} {
			rest, err := readFrom(t, set, got[i].next)
			if err != nil || !slices.Equal(outcome(rest, nil), outcome(got[i+1:], nil)) {
				t.Errorf("%s: resumed after record %d: %d records, %v", name, i, len(rest), err)
			}
		}
	}
}

// readToEnd returns a reader that has read everything, and the error at its end.
func readToEnd(t *testing.T, set *Set) (*Reader, error) {
	t.Helper()
	r, err := set.Reader(Position{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	var rec Record
	for err == nil {
		_, err = r.Next(nil, &rec)
	}
	return r, err
}

func TestChecksumsInInputs(t *testing.T) {
	name := write(t, t.TempDir(), "a", "abc")
	set := openSet(t, Options{Args: []string{name, "synth://wikitext?docs=1"}})
	r, _ := readToEnd(t, set)
	in := set.LinesRead(r.Position())
	if in[0].Checksum != "xxh3-128:06b05ab6733a618578af5f94892f3950" || in[0].Read != 3 { // xxhsum -H2 of "abc"
		t.Errorf("%+v", in[0])
	}
	if in[1].Checksum != "" || in[1].Read == 0 {
		t.Errorf("%+v", in[1])
	}
	if read, total := r.Progress(); read != 3+in[1].Read || total != -1 {
		t.Errorf("progress %d of %d", read, total)
	}
}

func TestTextBytes(t *testing.T) {
	dir := t.TempDir()
	text, records := write(t, dir, "a.txt", "0123456789"), write(t, dir, "a.jsonl", `{"text":"a"}`+"\n")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte("0123456789"))
	w.Close()
	for _, c := range []struct {
		args  []string
		plain bool
	}{
		{[]string{text}, true},
		{[]string{text, "synth://recipes"}, true},
		{[]string{text, records}, false},
		{[]string{text, write(t, dir, "b.txt.gz", zipped.String())}, false},
	} {
		n, plain := openSet(t, Options{Args: c.args}).TextBytes()
		if plain != c.plain || plain && n != 10 {
			t.Errorf("%v: %d, %t", c.args, n, plain)
		}
	}
}

func TestEstimate(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args  []string
		bytes int64
		known bool
	}{
		{[]string{write(t, dir, "a", "0123456789")}, 10, true},
		{[]string{"synth://wikitext?bytes=1e6", write(t, dir, "a", "0123456789")}, 1_000_010, true},
		{[]string{"synth://wikitext", write(t, dir, "a", "0123456789")}, 10, false},
	} {
		if n, known := openSet(t, Options{Args: c.args}).EstimateBytes(); n != c.bytes || known != c.known {
			t.Errorf("%v: %d, %t", c.args, n, known)
		}
	}
}
