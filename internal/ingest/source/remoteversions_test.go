package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// Files that are read at many places, from a server that gives neither a validator nor a length,
// have the records of the same file on disk: they are copied first. What breaks off is read again,
// and is never continued with another version.
func TestRemoteFilesWithoutValidators(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it reads every kind of file")
	}
	dir := t.TempDir()
	for name, data := range farFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readWithoutValidators(t, dir, name, data)
		})
	}
}

func readWithoutValidators(t *testing.T, dir, name string, data []byte) {
	local := readAll(t, Options{Args: []string{write(t, dir, name, string(data))}})
	other := bytes.Clone(data)
	other[len(other)/4] ^= 0x20
	for _, kind := range []string{"ranges", "no size", "drops", "changes"} {
		srv := remotetest.New()
		srv.Chunked, srv.NoRanges = kind == "no size", kind == "no size"
		srv.Put("/"+name, remotetest.File{Data: data, ETag: "-"})
		set := openSet(t, Options{Args: []string{srv.URL + "/" + name}, Places: Places{ScratchDir: dir}})
		drop := remotetest.Fault{Drop: max(1, len(data)/2)}
		switch kind {
		case "changes":
			drop.Then = func() { srv.Put("/"+name, remotetest.File{Data: other, ETag: "-"}) }
			fallthrough
		case "drops":
			srv.Fail(drop)
		}
		got, err := readFrom(t, set, Position{})
		var changed *cause.ChangedError
		switch {
		case kind == "changes" && (!errors.As(err, &changed) || changed.What != "content"):
			t.Errorf("%s, %s: %v", name, kind, err)
		case kind != "changes" && (err != nil || len(got) != len(local)):
			t.Errorf("%s, %s: %d of %d records, %v", name, kind, len(got), len(local), err)
		}
		for i := range got {
			if got[i].data != local[i].data {
				t.Errorf("%s, %s: record %d differs", name, kind, i)
				break
			}
		}
		srv.Close()
	}
}

// A position is resumed in the middle of a file only under the validator that was read under. Else
// what came before is read again and compared.
func TestRemoteResumesUnderItsValidator(t *testing.T) {
	text := numbered(20_000)
	other := strings.Replace(text, "line 7", "mine 7", 1)
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, c := range []struct{ was, is remotetest.File }{
		{remotetest.File{ETag: "-"}, remotetest.File{ETag: `"1"`}},
		{remotetest.File{ETag: "-"}, remotetest.File{ETag: "-"}},
		{remotetest.File{ETag: `"1"`}, remotetest.File{ETag: "-"}},
		{remotetest.File{ETag: `"1"`, Modified: then}, remotetest.File{ETag: "-", Modified: then}},
	} {
		srv := remotetest.New()
		c.was.Data, c.is.Data = []byte(text), []byte(text)
		srv.Put("/a.txt", c.was)
		o := Options{Args: []string{srv.URL + "/a.txt"}}
		records := readAll(t, o)
		at := reread(t, records[len(records)/2].next)
		srv.Put("/a.txt", c.is)
		if rest, err := readFrom(t, openSet(t, o), at); err != nil || len(rest) != len(records)-len(records)/2-1 {
			t.Errorf("case %d: the same content: %d records, %v", i, len(rest), err)
		}
		c.is.Data = []byte(other)
		srv.Put("/a.txt", c.is)
		var changed *cause.ChangedError
		if rest, err := readFrom(t, openSet(t, o), at); !errors.As(err, &changed) || changed.What != "content" {
			t.Errorf("case %d: other content: %d records, %v", i, len(rest), err)
		}
		srv.Close()
	}
}

// What a user should know about the answers of web servers is among the notes.
func TestAnswersAreTold(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	srv.Put("/page.txt", remotetest.File{Data: []byte("\n<!DOCTYPE html><html><form>Password</form></html>\n")})
	srv.Put("/page.html", remotetest.File{Data: []byte("<!doctype html><p>text\n")})
	srv.Put("/a.txt", remotetest.File{Data: []byte("one\ntwo\n")})
	table, err := os.ReadFile("columnar/testdata/plain.parquet")
	if err != nil {
		t.Fatal(err)
	}
	srv.Put("/known.parquet", remotetest.File{Data: table})
	srv.Put("/unknown.parquet", remotetest.File{Data: table, ETag: "-"})
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/moved.txt", "/moved2.txt":
			http.Redirect(w, r, "/a.txt?token=V4LUE&id=V4LUE", http.StatusFound)
		case "/typed.txt":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, "who are you?\n")
		case "/unframed.txt":
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none\ntwo\n")
				c.Close()
			}
		default:
			return false
		}
		return true
	}
	at := func(names ...string) Options {
		o := Options{}
		for _, n := range names {
			o.Args = append(o.Args, srv.URL+n)
		}
		return o
	}
	for _, c := range []struct {
		o    Options
		want string // "" for no note
	}{
		{at("/a.txt"), ""}, {at("/page.html"), ""}, {at("/known.parquet"), ""},
		{at("/unknown.parquet"), "/unknown.parquet: the server gives neither an ETag"},
		{at("/page.txt"), "/page.txt: the server answered with a web page"},
		{at("/typed.txt", "/page.txt"), "/typed.txt and 1 more: the server answered with a web page"},
		{at("/moved.txt"), srv.URL + "/moved.txt was redirected to " + srv.URL + "/a.txt?hidden=~"},
		{at("/moved.txt", "/moved2.txt"),
			"2 addresses were redirected, the first of them: " + srv.URL + "/moved.txt was"},
		{at("/unframed.txt"), "/unframed.txt: the server does not say the length"},
	} {
		notes := openSet(t, c.o).Notes()
		text := fmt.Sprint(notes)
		if !strings.Contains(text, c.want) || c.want == "" && len(notes) > 0 || c.want != "" && len(notes) != 1 ||
			strings.Contains(text, "V4LUE") {
			t.Errorf("%s: %q, want %q", c.o.Args, notes, c.want)
		}
	}
}
