package serve

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
)

func TestPackedRefusals(t *testing.T) {
	schema := shard.Schema{VocabSize: 500, Labels: true}
	client := serveDir(t, randomRows(20, schema, 1).write(t, t.TempDir(), schema, 64<<10))
	for query, want := range map[string]string{
		"pack=nosuch&max_length=5":                           "not one of none, wrapped, bfd, bfd_split",
		"pack=bfd&max_length=0":                              "not a whole number from 1",
		"pack=bfd&max_length=-5":                             "not a whole number from 1",
		"max_length=5":                                       "rows are not packed",
		"pack=none&max_length=5":                             "rows are not packed",
		"pack=bfd&bucket=5":                                  "bucket",
		"pack=bfd":                                           "cannot share rows",
		"pack=bfd&max_length=64&labels=causal&start=99":      "lies outside",
		"pack=bfd&max_length=64&labels=causal&max_tokens=32": "the longest row takes 64",
		"borders=some":                                       "neither keep nor mask",
	} {
		if _, err := fetch(client, query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	mustFetch(t, client, "pack=bfd&labels=causal") // to the build's max-length
	for _, o := range []Options{{Pack: "nosuch"}, {PackLength: 5}, {Pack: pack.BFD, PackLength: pack.MaxLength + 1}} {
		o.Datasets = []string{t.TempDir()}
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "pack") &&
			!strings.Contains(err.Error(), "max-length") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestPackedByDefault: what the server packs where requests do not say, and what it says of that.
func TestPackedByDefault(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	dir := randomRows(50, schema, 1).write(t, t.TempDir(), schema, 64<<10)
	r, err := Open(Options{Datasets: []string{dir}, Pack: "concat", PackLength: 32})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if d := r.defaults(); d != "pack=wrapped&max_length=32" {
		t.Errorf("defaults %q", d)
	}
	for text, want := range map[string]string{"": "wrapped 32", "pack=none": "none 0", "max_length=8": "wrapped 8",
		"pack=bfd&max_length=9": "bfd 9", "pack=bfd": "bfd 0"} {
		values, _ := url.ParseQuery(text)
		q, err := feed.ParseQuery(values.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if q, err = r.packing(q); err != nil || fmt.Sprint(q.Pack, " ", q.PackLength) != want {
			t.Errorf("%q: %v %d, %v; want %s", text, q.Pack, q.PackLength, err, want)
		}
	}
}
