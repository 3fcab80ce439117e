package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/google/go-cmp/cmp"
)

// startBucket starts a server that answers as S3 does, with a bucket of these keys. Each holds its
// own name.
func startBucket(t *testing.T, keys ...string) *remotetest.Server {
	t.Helper()
	srv := remotetest.New()
	t.Cleanup(srv.Close)
	for _, k := range keys {
		srv.Put("/bucket/"+k, remotetest.File{Data: []byte(k + "\n"), ETag: `"e"`})
	}
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/bucket/" {
			w.Header().Set("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
			return false
		}
		prefix := r.URL.Query().Get("prefix")
		found := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
		remotetest.SendS3List(w, "", found, func(k string) int { return len(k) + 1 })
		return true
	}
	for name, value := range remotetest.S3Env(srv.URL) {
		t.Setenv(name, value)
	}
	return srv
}

// Every key of a bucket is read, though no file on a disk could have its name.
func TestKeysThatAreNoPaths(t *testing.T) {
	keys := []string{"d/a.txt", "d//b.txt", "d/./c.txt", "d/../e.txt", "d/x//y.txt", "d/x/../z.txt", "d///f.txt"}
	startBucket(t, append(slices.Clone(keys), "d/folder/", "d/.hidden.txt")...)
	for arg, want := range map[string][]string{
		"s3://bucket/d":          keys,
		"s3://bucket/d/":         keys,
		"s3://bucket/d/**":       keys,
		"s3://bucket/d/**/*.txt": keys,
		"s3://bucket/*/*/*.txt":  {"d//b.txt", "d/./c.txt", "d/../e.txt"},
		"s3://bucket/d//":        {"d//b.txt", "d///f.txt"},
		"s3://bucket/d//*.txt":   {"d//b.txt"},
		"s3://bucket/*//*.txt":   {"d//b.txt"},
		"s3://bucket/*/../*.txt": {"d/../e.txt"},
		"s3://bucket/d//b.txt":   {"d//b.txt"},
	} {
		set := openSet(t, Options{Args: []string{arg}})
		records, err := readFrom(t, set, Position{})
		if err != nil {
			t.Fatalf("%s: %v", arg, err)
		}
		var got []string
		for _, r := range records {
			got = append(got, r.data)
			if uri := set.URI(r.Input); uri != "s3://bucket/"+r.data {
				t.Errorf("%s: %s is said to be of %s", arg, r.data, uri)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
			t.Errorf("%s: %s", arg, diff)
		}
		if notes := fmt.Sprint(set.Notes()); strings.HasSuffix(arg, "/d") && (!strings.Contains(notes, "hidden") ||
			!strings.Contains(notes, "ends with a slash (d/folder/)") && !strings.Contains(notes, "(folder/)")) {
			t.Errorf("%s: %s", arg, notes)
		}
	}
}

// Folders of a bucket in which Options.Marks recognises a file are skipped, with all below them.
func TestDatasetsInBuckets(t *testing.T) {
	startBucket(t, "d/a.txt", "d/old/manifest.json", "d/old/train.txt", "d/old/deep/b.txt", "d/older/c.txt",
		"d/x/unfinished/mark", "d/x/unfinished/d.txt", "d/x//mark", "d/x//e.txt", "d/x/f.txt", "d/other/manifest.json",
		"d/other/g.txt", "d/mark")
	marks := func(name string, head func() []byte) bool {
		return name == "mark" || name == "manifest.json" && strings.HasPrefix(string(head()), "d/old/")
	}
	for _, arg := range []string{"s3://bucket/d", "s3://bucket/d/**/*.txt"} {
		set := openSet(t, Options{Args: []string{arg}, Places: Places{Marks: marks}, Exclude: []string{"mark"}})
		var got []string
		for _, in := range inputsOf(t, set) {
			got = append(got, strings.TrimPrefix(in.URI, "s3://bucket/d/"))
		}
		if s := strings.Join(got, " "); s != "a.txt older/c.txt other/g.txt x/f.txt" &&
			s != "a.txt older/c.txt x/f.txt other/g.txt" {
			t.Errorf("%s: read %s", arg, s)
		}
		if notes := fault.Join(set.Notes(), "; ").String(); !strings.Contains(notes,
			"3 folders of datasets that dsload built (old, …)") {
			t.Errorf("%s: %s", arg, notes)
		}
	}
}
