package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

const pngHead = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06"

// A file is a file of an archive.
type file struct{ name, data string }

func tarred(t testing.TB, files ...file) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.data)), Mode: 0o644, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if f.data == "->" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "elsewhere", 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(f.data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zipped(t testing.TB, method uint16, files ...file) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		m, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Write([]byte(f.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// webdataset returns the files of the archives in the tests, and their documents.
func webdataset() (files []file, want []string) {
	long := strings.Repeat("long name/", 30) + "c.txt"
	files = []file{{"d/", ""}, {"d/a.txt", "one\ntwo\n"}, {"README.md", "no"}, {"d/img.png", pngHead + "data"},
		{"b.json", "{\"text\":\n\"three\"}"},
		{".hidden.txt", "no"}, {"e.jsonl", "{\"text\":\"four\"}\n\n{\"text\":\"five\"}\n"}, {long, "\ufeffsix"},
		{"t.csv", "id,text\n1,seven\n"},
		{"u.tsv", "text\tid\neight\t1\n"}, {"x.gz", gzipped("no")}, {"empty.txt", ""},
		{"blob", strings.Repeat("\x01\x00", 50)}, {"link.txt", "->"}, {"z.json", "[{\"text\":\"nine\"},\"ten\"]"}}
	return files, []string{"one", "two", "{\"text\":\n\"three\"}", `{"text":"four"}`, `{"text":"five"}`, "six",
		"1,seven", "eight\t1", `{"text":"nine"}`, "ten"}
}

func dataOf(records []piece) (out []string) {
	for _, r := range records {
		if r.Err != nil {
			out = append(out, "! "+r.Err.Error())
			continue
		}
		out = append(out, r.data)
	}
	return out
}

// Archives give the records of their files, from every position on the rest of them.
func TestArchives(t *testing.T) {
	dir := t.TempDir()
	files, want := webdataset()
	noLink := slices.DeleteFunc(slices.Clone(files), func(f file) bool { return f.data == "->" })
	joined := tarred(t, files[:4]...) + tarred(t, files[4:]...)
	for name, data := range map[string]string{"a.tar": tarred(t, files...), "a.tgz": gzipped(tarred(t, files...)),
		"noname":     zstded(t, tarred(t, files...), 1<<20),
		"joined.tar": joined, "a.zip": zipped(t, zip.Deflate, noLink...), "stored": zipped(t, zip.Store, noLink...)} {
		o := Options{Args: []string{write(t, dir, name, data)}, Framing: Framing{TextField: "text"}}
		all, err := readFrom(t, openSet(t, o), Position{})
		if err != nil || !slices.Equal(dataOf(all), want) {
			t.Fatalf("%s: %q, %v", name, dataOf(all), err)
		}
		for i, r := range all {
			if r.Row != int64(i+1+btoi(i >= 4)) || r.Ordinal != int64(i) || r.Member == "" {
				t.Errorf("%s: record %d is row %d of member %q", name, i, r.Row, r.Member)
			}
			rest, err := readFrom(t, openSet(t, o), r.next)
			if w, g := outcome(all[i+1:], nil), outcome(rest, err); !slices.Equal(w, g) {
				t.Errorf("%s after %d: %q, want %q", name, i, g, w)
			}
		}
		m := lastPosition(t, o).Members
		n := 6 // README, image, hidden, gzip, blob, link
		if strings.Contains(name, "zip") || name == "stored" {
			n = 5
		}
		if m == nil || m.Count != int64(n) {
			t.Errorf("%s: skipped %+v, want %d", name, m, n)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func lastPosition(t *testing.T, o Options) Position {
	t.Helper()
	r, _ := readToEnd(t, openSet(t, o))
	return r.Position()
}

// A zip archive of one file is read as that file is; a forced format is that of every member.
func TestArchivesOfOneFormat(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data   string
		format Format
		want   []string
	}{
		"one.zip": {zipped(t, zip.Deflate, file{"notes.txt", "one\ntwo\n"}), Auto, []string{"one", "two"}},
		"json.zip": {zipped(t, zip.Deflate, file{"docs.json", "[{\"a\":1}]"}, file{"LICENSE", "no"}), Auto,
			[]string{`{"a":1}`}},
		"txt.tar": {tarred(t, file{"a.txt", "one\ntwo\n"}, file{"b.txt", "three"}), Text,
			[]string{"one", "two", "three"}},
		"txt.zip": {zipped(t, zip.Deflate, file{"a.txt", "one\ntwo\n"}, file{"b.txt", "three"}), Text,
			[]string{"one", "two", "three"}},
	} {
		o := Options{Args: []string{write(t, dir, name, c.data)}, Format: c.format}
		if got := dataOf(readAll(t, o)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	tarFile := write(t, dir, "pairs.tar", tarred(t, file{"1.txt", "a"}, file{"1.json", "{}"}, file{"2.txt", "b"}))
	for _, o := range []Options{{Include: []string{"*.txt"}}, {Exclude: []string{"*.json"}}} {
		o.Args = []string{tarFile}
		if got := dataOf(readAll(t, o)); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("include %q, exclude %q: %q", o.Include, o.Exclude, got)
		}
	}
	o := Options{Args: []string{dir}, Include: []string{"pairs.*"}}
	if got := dataOf(readAll(t, o)); len(got) != 3 {
		t.Errorf("an archive that a pattern chose: %q", got)
	}
}

// Wherever an archive is cut off or changed, it is an error or gives the same records, and never
// fewer.
func TestDamagedArchives(t *testing.T) {
	files, want := webdataset()
	files = slices.DeleteFunc(files, func(f file) bool { return f.data == "->" || f.data == "" })
	dir := t.TempDir()
	for kind, data := range map[string]string{"tar": tarred(t, files...), "zip": zipped(t, zip.Deflate, files...)} {
		try := func(what string, harmed string) {
			set, err := Open(t.Context(), Options{Args: []string{write(t, dir, "harmed", harmed)}, Framing: Framing{TextField: "text"}})
			if err != nil {
				return
			}
			defer set.Close()
			got, err := readFrom(t, set, Position{})
			if err == nil && len(got) < len(want) {
				t.Fatalf("%s %s: %q without an error", kind, what, dataOf(got))
			}
			var input *cause.InputError
			if err != nil && !errors.As(err, &input) {
				t.Fatalf("%s %s: %v", kind, what, err)
			}
		}
		for n := 0; n < len(data); n += 61 {
			try(fmt.Sprint("cut at ", n), data[:n])
			flipped := []byte(data)
			flipped[n] ^= 0x5a
			if kind == "zip" { // a tar archive has checksums of its headers alone
				try(fmt.Sprint("changed at ", n), string(flipped))
			}
		}
	}
}

func TestTarKinds(t *testing.T) {
	dir := t.TempDir()
	old := []byte(tarred(t, file{"a.txt", "text"}))
	copy(old[257:265], make([]byte, 8)) // the format before ustar has no magic
	sum := 0
	copy(old[148:156], "        ")
	for _, b := range old[:512] {
		sum += int(b)
	}
	copy(old[148:], fmt.Sprintf("%06o\x00 ", sum))
	if got := dataOf(readAll(t, Options{Args: []string{write(t, dir, "old", string(old))}})); !slices.Equal(got,
		[]string{"text"}) {
		t.Errorf("the old format: %q", got)
	}
	for name, c := range map[string]struct {
		data string
		want error
	}{
		"noend.tar":   {string(old[:1024]), cause.Truncated},
		"garbage.tar": {string(old) + strings.Repeat("garbage ", 64), cause.Corrupt},
		"no.tar":      {"some text", cause.Corrupt},
	} {
		set, err := Open(t.Context(), Options{Args: []string{write(t, dir, name, c.data)}})
		if err == nil {
			_, err = readFrom(t, set, Position{})
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
