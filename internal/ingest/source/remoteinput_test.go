package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/google/go-cmp/cmp"
)

// wikiArticles returns WikiText of n articles.
func wikiArticles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " \n = Title %d = \n \n %s \n", i, numbered(3))
	}
	return b.String()
}

// remoteFiles returns inputs of each format, by name.
func remoteFiles(t *testing.T) map[string]string {
	var lines, table strings.Builder
	table.WriteString("\ufeffid,text\n")
	for i := range 4000 {
		fmt.Fprintf(&lines, "{\"id\": %d, \"text\": \"line %d\"}\n", i, i)
		fmt.Fprintf(&table, "%d,\"line\n%d\"\n", i, i)
	}
	return map[string]string{
		"a.txt": numbered(20_000), "b.jsonl": lines.String(), "c.csv": table.String(), "d.tokens": wikiArticles(2000),
		"e.txt.gz": gzipped(numbered(20_000)), "f.txt.zst": zstded(t, numbered(20_000), 1<<20), "g.txt": "",
		"h.txt": "\ufeffone\ntwo",
	}
}

// A remote file gives the records of the same file on disk, however its server behaves, and so does
// the rest of it from each of its positions.
func TestRemoteInputs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range remoteFiles(t) {
		if text == "" {
			continue
		}
		local := readAll(t, Options{Args: []string{write(t, dir, name, text)}})
		for _, kind := range []string{"ranges", "no ranges", "no size", "no identity"}[:effort.Of(1, 4, 4)] {
			srv := remotetest.New()
			f := remotetest.File{Data: []byte(text)}
			switch kind {
			case "no ranges":
				srv.NoRanges = true
			case "no size":
				srv.NoRanges, srv.Chunked = true, true
			case "no identity":
				f.ETag = "-"
			}
			srv.Put("/"+name, f)
			set := openSet(t, Options{Args: []string{srv.URL + "/" + name}})
			got, err := readFrom(t, set, Position{})
			if err != nil || len(got) != len(local) {
				t.Fatalf("%s, %s: %d of %d records, %v", name, kind, len(got), len(local), err)
			}
			for i := range got {
				if got[i].data != local[i].data || got[i].Offset != local[i].Offset || got[i].Row != local[i].Row {
					t.Fatalf("%s, %s: record %d is %+v, want %+v", name, kind, i, got[i], local[i])
				}
			}
			for _, i := range []int{0, len(got) / 2, len(got) - 1} {
				rest, err := readFrom(t, set, reread(t, got[i].next))
				if err != nil {
					t.Fatalf("%s, %s: from record %d: %v", name, kind, i, err)
				}
				if diff := cmp.Diff(len(got)-i-1, len(rest)); diff != "" {
					t.Fatalf("%s, %s: from record %d: %s", name, kind, i, diff)
				}
				for j := range rest {
					if rest[j].data != got[i+1+j].data || rest[j].Ordinal != got[i+1+j].Ordinal ||
						rest[j].next.Sum != got[i+1+j].next.Sum {
						t.Fatalf("%s, %s: from record %d: record %d differs", name, kind, i, j)
					}
				}
			}
			srv.Close()
		}
	}
}

// reread returns a position as a later process has it.
func reread(t *testing.T, p Position) (out Position) {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Resuming in the middle of a file requests nothing before that place except a header.
func TestRemoteInputsResumeInPlace(t *testing.T) {
	for name, text := range remoteFiles(t) {
		plain := !strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".zst")
		if len(text) < 20 || !plain {
			continue
		}
		srv := remotetest.New()
		srv.Put("/"+name, remotetest.File{Data: []byte(text)})
		args := Options{Args: []string{srv.URL + "/" + name}}
		records := readAll(t, args)
		at := records[len(records)/2].next
		set := openSet(t, args)
		before := len(srv.Requests())
		if _, err := readFrom(t, set, reread(t, at)); err != nil {
			t.Fatal(err)
		}
		requests := srv.Requests()[before:]
		want := fmt.Sprintf("bytes=%d-", at.Offset)
		if last := requests[len(requests)-1]; last.Range != want {
			t.Errorf("%s: asked for %q, want %q", name, last.Range, want)
		}
		if len(requests) > 1 && !strings.HasSuffix(name, ".csv") {
			t.Errorf("%s: %d requests", name, len(requests))
		}
		forged := reread(t, at)
		forged.Sums.XXH3[3]++
		if _, err := readFrom(t, set, forged); !errors.Is(err, cause.Corrupt) {
			t.Errorf("%s: a forged checksum: %v", name, err)
		}
		srv.Close()
	}
}

func TestRemoteInputsThatChange(t *testing.T) {
	text := numbered(30_000)
	other := strings.ReplaceAll(text, "line", "mine")
	srv := remotetest.New()
	defer srv.Close()
	srv.Put("/a.txt", remotetest.File{Data: []byte(text)})
	o := Options{Args: []string{srv.URL + "/a.txt"}}
	set := openSet(t, o)
	srv.Fail(remotetest.Fault{Drop: len(text) / 2,
		Then: func() { srv.Put("/a.txt", remotetest.File{Data: []byte(other)}) }})
	records, err := readFrom(t, set, Position{})
	var changed *cause.ChangedError
	if !errors.As(err, &changed) || changed.What != "ETag" || len(records) == 0 {
		t.Errorf("after %d records: %v", len(records), err)
	}
	// a position of the old version is refused too
	if _, err := openSet(t, o).Reader(reread(t, records[len(records)-1].next)); !errors.As(err, &changed) {
		t.Errorf("resumed: %v", err)
	}
}

func TestRemoteRefusals(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	srv.Put("/a.png", remotetest.File{Data: []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 100))})
	srv.Put("/cut.txt.gz", remotetest.File{Data: []byte(gzipped(numbered(10_000)))[:5000]})
	srv.Put("/empty.txt", remotetest.File{})
	gone := remotetest.New()
	gone.Close()
	for path, want := range map[string]error{srv.URL + "/b.txt": fs.ErrNotExist, srv.URL + "/a.png": cause.Unsupported,
		srv.URL + "/cut.txt.gz": cause.Truncated,
		srv.URL + "/empty.txt":  cause.NoDocuments, gone.URL + "/a.txt": remote.ErrUnreachable,
		"https://joe:secret@/a": cause.Usage} {
		set, err := Open(context.Background(), Options{Args: []string{path}})
		if err == nil {
			_, err = readFrom(t, set, Position{})
			set.Close()
		}
		if !errors.Is(err, want) || strings.Contains(err.Error(), "secret") ||
			!strings.Contains(err.Error(), uris.Redact(path)) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// Credentials are used, and shown nowhere.
func TestRemoteCredentials(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	srv.User = "joe:pa55word"
	srv.Put("/a.txt", remotetest.File{Data: []byte("one\ntwo\n")})
	address := strings.Replace(srv.URL, "://", "://joe:pa55word@", 1) + "/a.txt?X-Amz-Signature=pa55word&part=" +
		strconv.Itoa(1)
	set := openSet(t, Options{Args: []string{address, address}})
	records, err := readFrom(t, set, Position{})
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	shown := fmt.Sprint(set.Known(), set.Notes(), set.URI(0), set.LinesRead(records[3].next), records)
	if strings.Contains(shown, "pa55word") || !strings.Contains(shown, "part=1") ||
		!strings.Contains(shown, "given twice") {
		t.Errorf("shown: %s", shown)
	}
	srv.Fail(remotetest.Fault{Status: http.StatusForbidden})
	if _, err := readFrom(t, set, Position{}); err == nil || strings.Contains(err.Error(), "pa55word") {
		t.Error(err)
	}
}

// Addresses that differ in a part that is hidden are different inputs; those that differ in their
// signatures alone are the same one.
func TestHiddenPartsDistinguish(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	srv.Put("/a.txt", remotetest.File{Data: []byte("one\n")})
	at := func(query string) string { return srv.URL + "/a.txt?" + query }
	set := openSet(t, Options{Args: []string{at("id=1&sig=x"), at("id=2&sig=x")}})
	records, err := readFrom(t, set, Position{})
	if err != nil || len(records) != 2 || set.URI(0) == set.URI(1) {
		t.Fatalf("%d records of %s and %s, %v", len(records), set.URI(0), set.URI(1), err)
	}
	again := openSet(t, Options{Args: []string{at("id=1&sig=y"), at("sig=z&id=2")}})
	if rest, err := readFrom(t, again, reread(t, records[0].next)); err != nil || len(rest) != 1 {
		t.Errorf("signed again: %d records, %v", len(rest), err)
	}
	var changed *cause.ChangedError
	other := openSet(t, Options{Args: []string{at("id=1&sig=x"), at("id=3&sig=x")}})
	if _, err := readFrom(t, other, reread(t, records[0].next)); !errors.As(err, &changed) {
		t.Errorf("another file: %v", err)
	}
}
