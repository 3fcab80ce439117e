package source

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// bzip2ed compresses text with the bzip2 program.
func bzip2ed(t testing.TB, text string) string {
	t.Helper()
	if _, err := exec.LookPath("bzip2"); err != nil {
		t.Skip("there is no bzip2 program")
	}
	cmd := exec.Command("bzip2", "-c")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// After compressed data, padding and further members are read, and other bytes are an error or
// noted.
func TestTails(t *testing.T) {
	dir := t.TempDir()
	const text = "hello\nworld\n"
	gz, zs, bz := gzipped(text), zstded(t, text, 1<<10), bzipped(t)
	other, err := hex.DecodeString("425a683917724538509000000000") // an empty stream
	if err != nil {
		t.Fatal(err)
	}
	empty, zeros, skip := string(other), strings.Repeat("\x00", 512), "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
	for i, c := range []struct {
		data     string
		times    int   // how often the text comes
		err      error // or what ends it
		trailing string
	}{
		{gz + zeros, 1, nil, ""},
		{gz + gz + zeros + gz, 3, nil, ""},
		{gz + "\x00", 1, nil, ""},
		{gz + zeros + "x", 1, cause.Corrupt, fmt.Sprintf("from byte %d of the file on", len(gz)+512)},
		{gz + "\x1f", 1, cause.Corrupt, fmt.Sprintf("from byte %d of the file on", len(gz))},
		{gz + gz[:len(gz)-4], 2, cause.Truncated, ""},
		{"\x1f\x8b and then no header of gzip", 0, cause.Corrupt, ""},
		{"\x1f\x8b", 0, cause.Truncated, ""},
		{zs + zs + skip + zs, 3, nil, ""},
		{skip + zs + zeros, 1, nil, ""},
		{zs + "garbage", 1, cause.Corrupt, fmt.Sprintf("from byte %d of the file on", len(zs))},
		{bz + bz, 2, nil, ""},
		{bz + empty + bz, 2, nil, ""},
		{bz + zeros, 1, nil, ""},
		{bz + "\x00", 1, nil, ""},
		{bz + "\n", 1, nil, fmt.Sprintf("%d:1", len(bz))},
		{bz + bz + "garbage", 2, nil, fmt.Sprintf("%d:7", 2*len(bz))},
		{bz + "BZ2", 1, nil, fmt.Sprintf("%d:3", len(bz))},
		{bz + "BZh9 garbage in the place of a block", 1, cause.Corrupt, ""},
		{bz + bz[:len(bz)-3], 1, cause.Truncated, ""},
	} {
		name := write(t, dir, fmt.Sprintf("%d.txt", i), c.data)
		for _, o := range []Options{{Args: []string{name}}, {Args: []string{"-"}, Places: Places{Stdin: strings.NewReader(c.data)}}} {
			set, err := Open(context.Background(), o)
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			r, err := set.Reader(Position{})
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			var rec Record
			for err == nil {
				if got, err = r.Next(got, &rec); err == nil {
					got = append(got, '\n')
				}
			}
			if err == io.EOF {
				err = nil
			}
			if !errors.Is(err, c.err) || c.err != nil && !strings.Contains(err.Error(), c.trailing) {
				t.Errorf("%d: %v, want %v %s", i, err, c.err, c.trailing)
			}
			if n := bytes.Count(got, []byte(text)); c.err == nil && (n != c.times || len(got) != n*len(text)) {
				t.Errorf("%d: %q, want the text %d times", i, got, c.times)
			}
			told := ""
			if p := r.Position().Trailing; p != nil {
				told = fmt.Sprintf("%d:%d", p.Offset, p.Bytes)
			}
			if c.err == nil && told != c.trailing {
				t.Errorf("%d: trailing bytes %q, want %q", i, told, c.trailing)
			}
			r.Close()
		}
	}
}

// Equal content has one format and one sequence of records, however it is compressed and delivered.
func TestDetectionSeesTextWhateverItsForm(t *testing.T) {
	r := rand.NewPCG(5, 5)
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = '0' + byte(r.Uint64()%64)
		}
		return strings.ReplaceAll(string(b), `\`, "/")
	}
	var jsonl, wiki, csv strings.Builder
	wiki.WriteString(" \n = Heading = \n \n")
	csv.WriteString("id,text\n")
	for i := range 200 {
		fmt.Fprintf(&jsonl, "{\"id\": NaN, \"text\": %q}\n", noise(900+i%300))
		fmt.Fprintf(&wiki, " %s\n", noise(1000))
		fmt.Fprintf(&csv, "%d,\"%s, and more\"\n", i, noise(900))
	}
	dir := t.TempDir()
	for want, text := range map[Format]string{JSONL: jsonl.String(), WikiText: wiki.String(), CSV: csv.String(),
		Text: numbered(8_000)} {
		var first []string
		for c, data := range map[string]string{"plain": text, "gzip": gzipped(text), "zstd": zstded(t, text, 8<<20),
			"bzip2": bzip2ed(t, text)} {
			for _, o := range []Options{{Args: []string{write(t, dir, c, data)}},
				{Args: []string{"-"}, Places: Places{Stdin: strings.NewReader(data)}}} {
				o.TextField = "text"
				set := openSet(t, o)
				if got := inputsOf(t, set)[0].Format; got != want {
					t.Errorf("%s, %s of %s: %s", want, c, o.Args[0], got)
				}
				records, err := readFrom(t, set, Position{})
				if err != nil {
					t.Fatal(err)
				}
				if got := outcome(records, nil); first == nil {
					first = got
				} else if !slices.Equal(got, first) {
					t.Errorf("%s, %s of %s: other records", want, c, o.Args[0])
				}
			}
		}
	}
}

func TestDetectFormatOfContent(t *testing.T) {
	for text, want := range map[string]Format{
		"{\"a\": NaN}\n{}\n":                      JSONL,
		"{\"a\": broken\n{\"a\": 1}\n":            JSONL, // one bad record does not make text of all
		"{hello}\n{world}\n":                      Text,
		"id,text\n1,a\n2,\"b, c\"\n":              CSV,
		"id,text\r\n1,a\r\n":                      CSV,
		"id;text\n1;a\n":                          CSV,
		"id,text\n1,a\n2,b,c\n":                   Text,
		"a text, with a comma\nand one more\n":    Text,
		"one,text,of,words\n":                     Text,
		"[{\"a\": 1},\n {\"a\": 2}]\n":            JSON,
		"[\n  {\n    \"a\": 1\n  }\n]\n":          JSON,
		"{\n  \"a\": 1\n}\n":                      JSON,
		"[1] a footnote\n[2] another\n":           Text,
		"{\"a\": 1,\n\"b\": 2}\n":                 JSON,
		"\n\n = Title = \n\n text of the article": WikiText,
	} {
		if got := detectFormat("-", []byte(text), true, []string{"text"}); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Kinds that are named directly have an error that says what to do.
func TestKindsNamedDirectly(t *testing.T) {
	dir := t.TempDir()
	office := func(first string) string { return zipped(t, zip.Deflate, file{first, "<markup/>"}) }
	for name, c := range map[string]struct{ data, says string }{
		"a.warc": {"WARC/1.0\r\nWARC-Type: warcinfo\r\n", "warcio"}, "a.xml": {"<mediawiki xmlns=", "wikiextractor"},
		"wiki_00": {"<doc id=\"1\" url=", "wikiextractor"}, "a.rtf": {"{\\rtf1 a}", "pandoc"},
		"a.avro": {"Obj\x01\x04", "Avro"}, "a.orc": {"ORC\x08\x03\x10", "an ORC file"},
		"a.pdf": {"%PDF-1.4\n", "pdftotext"}, "a.png": {pngHead, "an image"}, "a.7z": {"7z\xbc\xaf\x27\x1c", "7z x"},
		"a.docx": {office("word/document.xml"), "pandoc"}, "a.epub": {office("content.opf"), "pandoc"},
		"unnamed":   {office("[Content_Types].xml"), "a spreadsheet into CSV"},
		"lfs.jsonl": {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"},
		"twice.gz":  {gzipped(gzipped("text\n")), "decompress it once"},
	} {
		_, err := Open(context.Background(), Options{Args: []string{write(t, dir, name, c.data)}})
		if !errors.Is(err, cause.Unsupported) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		as, err := Open(context.Background(), Options{Args: []string{filepath.Join(dir, name)}, Format: Document})
		if asIs := []string{"a.warc", "a.xml", "wiki_00", "a.rtf"}; slices.Contains(asIs, name) != (err == nil) {
			t.Errorf("%s as a document: %v", name, err)
		}
		if err == nil {
			as.Close()
		}
	}
}
