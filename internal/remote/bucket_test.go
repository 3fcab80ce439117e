package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

func TestBucketNames(t *testing.T) {
	for _, good := range []string{"s3://abc/x", "s3://my.bucket-1/x", "gs://a_b.c/x", "az://$web/x", "az://a-b-c"} {
		if _, _, err := parseBucket(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"s3://ab/x", "s3://" + strings.Repeat("a", 64) + "/x", "s3://a..b/x",
		"s3://10.0.0.1/x",
		"gs://ab", "gs://Abc/x", "gs://-abc/x", "az://ab/x", "az://a--b/x", "az://Abc/x", "s3://", "s3://a b/x"} {
		_, _, err := parseBucket(bad)
		var e *Error
		if !errors.Is(err, ErrUsage) || !errors.As(err, &e) || e.retry || e.Hint == "" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// sendList answers a request for a page of a bucket's list.
func sendList(w http.ResponseWriter, next string, keys ...string) bool {
	remotetest.SendS3List(w, next, keys, func(k string) int { return len(k) })
	return true
}

func newS3Store(t *testing.T, srv *remotetest.Server) *Store {
	t.Helper()
	for name, value := range remotetest.S3Env(srv.URL) {
		t.Setenv(name, value)
	}
	return newStore(t, srv)
}

// TestListsThatRepeat checks that lists whose pages come round again end, whatever their period.
func TestListsThatRepeat(t *testing.T) {
	for period := range 5 {
		srv := remotetest.New()
		n := 0
		srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
			n++
			return sendList(w, fmt.Sprint("token ", 2+n%(period+1)), "a/b")
		}
		err := newS3Store(t, srv).List(context.Background(), "s3://bucket/a", func(string, Object) error { return nil })
		if !errors.Is(err, ErrUnreachable) || n > 3*(period+2) {
			t.Errorf("a circle of %d pages: %v after %d requests", period+1, err, n)
		}
	}
	srv := remotetest.New()
	n, found := 0, 0
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		next := ""
		if n++; n < 40 {
			next = fmt.Sprint("token ", n)
		}
		return sendList(w, next, fmt.Sprint("a/", n))
	}
	err := newS3Store(t, srv).List(context.Background(), "s3://bucket/a", func(string, Object) error {
		found++
		return nil
	})
	if err != nil || found != 40 {
		t.Errorf("40 pages: %d objects, %v", found, err)
	}
}

// TestOtherListsThatRepeat does so for the other stores.
func TestOtherListsThatRepeat(t *testing.T) {
	var srv *remotetest.Server
	for uri, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"gs://bucket/a": func(w http.ResponseWriter,
			_ *http.Request) {
			io.WriteString(w, `{"nextPageToken": "same"}`)
		},
		"az://bucket/a": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<EnumerationResults><Blobs/><NextMarker>same</NextMarker></EnumerationResults>")
		},
		"hf://datasets/a/b": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "<"+srv.URL+"/next>; rel=next")
			if strings.Contains(r.URL.Path, "/revision/") {
				io.WriteString(w, `{"sha": "`+remotetest.Commit(1)+`"}`)
			} else {
				io.WriteString(w, "[]")
			}
		},
	} {
		srv = remotetest.New()
		srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
			answer(w, r)
			return true
		}
		setEnv(t, append(remotetest.NoAzure(), "AZURE_STORAGE_BLOB_ENDPOINT="+srv.URL, "STORAGE_EMULATOR_HOST="+srv.URL,
			"HF_ENDPOINT="+srv.URL, "HF_HUB_OFFLINE=", "HF_HOME="+t.TempDir())...)
		err := newStore(t, srv).List(context.Background(), uri, func(string, Object) error { return nil })
		if n := len(srv.Requests()); !errors.Is(err, ErrUnreachable) || n > 4 ||
			!strings.Contains(err.Error(), "never ends") {
			t.Errorf("%s: %v after %d requests", uri, err, n)
		}
	}
}

// TestListedKeys checks that a list gives every key, and that a folder's address may lack one slash
// at its end, and no other.
func TestListedKeys(t *testing.T) {
	keys := []string{"/x", "d/", "d/./c", "d/../c", "d/a", "d//b", "d//", "e"}
	srv := remotetest.New()
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		prefix := r.URL.Query().Get("prefix")
		return sendList(w, "", slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
			return !strings.HasPrefix(k, prefix)
		})...)
	}
	s := newS3Store(t, srv)
	for folder, want := range map[string]string{"s3://bucket": "/x d/ d/./c d/../c d/a d//b d// e",
		"s3://bucket/": "/x d/ d/./c d/../c d/a d//b d// e", "s3://bucket//": "x", "s3://bucket/d": "./c ../c a /b /",
		"s3://bucket/d/": "./c ../c a /b /", "s3://bucket/d//": "b"} {
		var got []string
		err := s.List(context.Background(), folder, func(name string, o Object) error {
			got = append(got, name)
			if prefix := strings.TrimSuffix(o.URI, name); !strings.HasPrefix(prefix, "s3://bucket/") {
				t.Errorf("%s: %s is %s", folder, name, o.URI)
			}
			return nil
		})
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%s: %q, %v", folder, got, err)
		}
	}
	stop := errors.New("stop")
	if err := s.List(context.Background(), "s3://bucket", func(string, Object) error { return stop }); err != stop {
		t.Errorf("an error of the caller: %v", err)
	}
}
