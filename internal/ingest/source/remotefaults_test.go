package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// farFiles are inputs that are read at random places, or decompressed, by name.
func farFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"a.txt.gz": []byte(gzipped(numbered(60_000))),
		"b.txt.zst": []byte(zstded(t, numbered(60_000), 1<<20))}
	tables, err := filepath.Glob("columnar/testdata/*.[pa]*")
	if err != nil || len(tables) < 8 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, method := range map[string]uint16{"deflated.md": zip.Deflate, "stored.md": zip.Store} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.WriteString(w, numbered(40_000))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files["c.zip"] = bytes.Clone(archive.Bytes())
	archive.Reset()
	w := tar.NewWriter(&archive)
	for _, name := range []string{"1.md", "2.md"} {
		text := numbered(30_000)
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
		if _, writeErr := io.WriteString(w, text); errors.Join(err, writeErr) != nil {
			t.Fatal(err, writeErr)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files["d.tar.gz"] = []byte(gzipped(archive.String()))
	return files
}

// Whatever a server does while such a file is read, the records are those of the file on disk, or an
// error says that the content changed, or that the server cannot be reached.
func TestRemoteFaults(t *testing.T) {
	dir := t.TempDir()
	for name, data := range farFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := readAll(t, Options{Args: []string{write(t, dir, name, string(data))}})
			other := bytes.Clone(data)
			other[len(other)/2] ^= 0x20
			soon := http.Header{"Retry-After": {"0"}}
			drop := max(1, min(len(data)/3, 100_000))
			var srv *remotetest.Server
			change := func() { srv.Put("/"+name, remotetest.File{Data: other}) }
			for fault, c := range map[string]struct {
				faults []remotetest.Fault
				want   error // nil: equal records
			}{
				"drops": {[]remotetest.Fault{{Drop: drop}, {Drop: 1}, {}, {Drop: drop}}, nil},
				"429":   {[]remotetest.Fault{{Status: 429, Header: soon}, {}, {Status: 429, Header: soon}}, nil},
				"5xx":   {[]remotetest.Fault{{Status: 500}, {Drop: drop}, {Status: 503}}, nil},
				"403":   {[]remotetest.Fault{{Drop: drop}, {Status: 403}}, remote.ErrDenied},
				"416":   {[]remotetest.Fault{{Drop: drop}, {Status: 416}}, remote.ErrUnreachable},
				"gone":  {[]remotetest.Fault{{Drop: drop}, {Status: 404}}, os.ErrNotExist},
				"changes": {[]remotetest.Fault{{Drop: drop, Then: change}},
					&cause.ChangedError{}},
			} {
				if testing.Short() && fault != "drops" && fault != "changes" {
					continue
				}
				srv = remotetest.New()
				srv.Put("/"+name, remotetest.File{Data: data})
				set := openSet(t, Options{Args: []string{srv.URL + "/" + name}})
				srv.Fail(c.faults...)
				got, err := readFrom(t, set, Position{})
				var changed *cause.ChangedError
				switch _, wantsChanged := c.want.(*cause.ChangedError); {
				case c.want == nil && (err != nil || len(got) != len(local)):
					t.Errorf("%s: %d of %d records, %v", fault, len(got), len(local), err)
				case wantsChanged && !errors.As(err, &changed),
					c.want != nil && !wantsChanged && !errors.Is(err, c.want) &&
						!(fault == "416" && errors.As(err, &changed)): // as of a file that is empty now
					t.Errorf("%s: %v after %d records", fault, err, len(got))
				case err != nil && !strings.Contains(err.Error(), srv.URL+"/"+name):
					t.Errorf("%s: the error names no file: %v", fault, err)
				}
				for i := range got {
					if got[i].data != local[i].data || got[i].Row != local[i].Row {
						t.Errorf("%s: record %d differs", fault, i)
						break
					}
				}
				srv.Close()
			}
		})
	}
}
