package zipfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// archive returns an archive of the named texts, every other one stored as it is.
func archive(t *testing.T, names []string, text func(name string) string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, name := range names {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: []uint16{zip.Store, zip.Deflate}[i%2]})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if _, err := io.WriteString(f, text(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func textOf(name string) string { return strings.Repeat("This is "+name+". ", 40) + "\n" }

// open returns a reader of the files in an archive.
func open(data []byte) (*Reader, error) {
	return NewReader(bytes.NewReader(data), int64(len(data)), &decompress.Counted{},
		func(e *Entry) bool { return !e.Folder && !strings.HasSuffix(e.Name, ".png") })
}

// TestReader: the members that are wanted come one after another, or each for itself.
func TestReader(t *testing.T) {
	data := archive(t, []string{"a.txt", "folder/", "folder/b.txt", "folder/picture.png", "c.txt"}, textOf)
	want := textOf("a.txt") + textOf("folder/b.txt") + textOf("c.txt")
	z, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if got, err := io.ReadAll(z); err != nil || string(got) != want {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
	one, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	one.Separate = true
	for {
		e, err := one.Dir.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !one.Wanted(&e) {
			continue
		}
		if err := one.Begin(e); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(one); err != nil || string(got) != textOf(e.Name) || int64(len(got)) != e.Size {
			t.Errorf("%s: %d of %d bytes, %v", e.Name, len(got), e.Size, err)
		}
		if err := one.End(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyMembers: a directory longer than the reader's buffer is read to its end.
func TestManyMembers(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("%04d.txt", i))
	}
	data := archive(t, names, func(name string) string { return name + "\n" })
	dir, err := OpenDirectory(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range names {
		if e, err := dir.Next(); err != nil || e.Name != want {
			t.Fatalf("%s, %v; want %s", e.Name, err, want)
		}
	}
	if _, err := dir.Next(); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// TestPutTogether: an archive among other bytes is refused with what takes it out of them, for either archive would
// be read as the other.
func TestPutTogether(t *testing.T) {
	one, other := archive(t, []string{"a.txt"}, textOf), archive(t, []string{"b.txt", "c.txt"}, textOf)
	n := len(one)
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"two":         {slices.Concat(one, other), fmt.Sprintf("%d bytes stand before the zip archive; keep each in a file of its own, this archive with `tail -c +%d`", n, n+1)},
		"two alike":   {slices.Concat(one, one), fmt.Sprintf("%d bytes stand before", n)},
		"a beginning": {slices.Concat(one, other[:9]), fmt.Sprintf("bytes follow the zip archive, from byte %d of the file on; keep what comes before with `head -c %[1]d`", n)},
		"zeros":       {slices.Concat(one, make([]byte, 99)), ""},
	} {
		z, err := open(c.data)
		if c.want != "" && (err == nil || !errors.Is(err, cause.Corrupt) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", what, err)
		}
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			z.Close()
		}
	}
}

// TestDamage: an archive that is cut off or changed is an error that says so, or gives the same text.
func TestDamage(t *testing.T) {
	data := archive(t, []string{"a.txt", "b.txt", "c.txt"}, textOf)
	want := textOf("a.txt") + textOf("b.txt") + textOf("c.txt")
	read := func(what string, data []byte) {
		z, err := open(data)
		var got []byte
		if err == nil {
			got, err = io.ReadAll(z)
			z.Close()
		}
		known := errors.Is(err, cause.Corrupt) || errors.Is(err, cause.Truncated) || errors.Is(err, cause.Unsupported)
		// A changed name may not be wanted any more; what is read is what was written.
		same := len(got) < len(want) || string(got) == want
		if err == nil && !same || err != nil && !known {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
	for n := range len(data) {
		z, err := open(data[:n])
		if err == nil {
			_, err = io.ReadAll(z)
		}
		if !errors.Is(err, cause.Truncated) && !errors.Is(err, cause.Corrupt) {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		changed := bytes.Clone(data)
		at := rng.IntN(len(data))
		changed[at] ^= 1 << rng.IntN(8)
		read(fmt.Sprintf("byte %d changed", at), changed)
	}
}
