package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// remoteTexts are files of several kinds, two of which a plan cuts.
func remoteTexts() map[string][]byte {
	var lines, records, table bytes.Buffer
	table.WriteString("id,text\n")
	for i := range 3000 {
		fmt.Fprintf(&lines, "line %d of a text, with words %d\n", i, i*7919)
		fmt.Fprintf(&records, "{\"n\": %d, \"text\": \"record %d\\nand more of it\"}\n", i, i)
		fmt.Fprintf(&table, "%d,\"row\n%d\"\n", i, i)
	}
	return map[string][]byte{"a.txt": lines.Bytes(), "b.jsonl": records.Bytes(), "c.csv": table.Bytes(),
		"d.txt": []byte("\ufeffone\n\ntwo\nthree")}
}

func remoteOptions(sources ...string) option.Options {
	return option.Options{Settings: option.Settings{Sources: sources, MaxLength: 48, ShardBytes: 32 << 10},
		Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20, Workers: 2}}
}

// TestRemotePartitions builds partitions of files on a web server, each from its own offset.
func TestRemotePartitions(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	var sources []string
	for _, name := range []string{"a.txt", "b.jsonl", "c.csv", "d.txt"} {
		srv.Put("/"+name, remotetest.File{Data: remoteTexts()[name]})
		sources = append(sources, srv.URL+"/"+name)
	}
	o := remoteOptions(sources...)
	o.MaxValExamples = 40
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	p := planned(t, o, 7)
	for _, phase := range p.Phases {
		for _, in := range phase.Inputs {
			if in.ETag == "" || in.Bytes <= 0 {
				t.Errorf("listed without an ETag or a size: %+v", in)
			}
		}
	}
	before := len(srv.Requests())
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, p, out)
	for i := range p.Parts {
		from := p.Parts[i].From
		if from.Offset == 0 {
			continue
		}
		name := "/" + filepath.Base(p.Phases[0].Inputs[from.Input].URI)
		want := fmt.Sprintf("bytes=%d-", from.Offset)
		found := false
		for _, r := range srv.Requests()[before:] {
			found = found || r.Path == name && strings.HasPrefix(r.Range, want)
		}
		if !found {
			t.Errorf("partition %d: no request for %s from %d on", i, name, from.Offset)
		}
	}
	if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, out, whole.Out, true)

	// A partition refuses another version of a file: by its ETag, and where the server gives none, by
	// its size or its content.
	var changed *cause.ChangedError
	other := bytes.Replace(remoteTexts()["a.txt"], []byte("words"), []byte("WORDS"), 1)
	srv.Put("/a.txt", remotetest.File{Data: other})
	fresh := filepath.Join(t.TempDir(), "fresh")
	if _, err := buildPart(p, 1, fresh); !errors.As(err, &changed) || changed.What != "ETag" || !changed.Planned {
		t.Errorf("another ETag: %v", err)
	}
	srv.Put("/a.txt", remotetest.File{Data: other, ETag: "-"})
	if _, err := buildPart(p, 0, fresh); !errors.As(err, &changed) || changed.What != "content" {
		t.Errorf("other content: %v", err)
	}
	srv.Put("/a.txt", remotetest.File{Data: other[:len(other)-1], ETag: "-"})
	if _, err := buildPart(p, 1, fresh); !errors.As(err, &changed) || changed.What != "size" {
		t.Errorf("another size: %v", err)
	}
	if _, err := buildPart(p, 6, fresh); err != nil {
		t.Errorf("a partition of other files: %v", err)
	}
}

// TestHubPartitions builds the partitions of a dataset of the Hub at the commit that the plan saw,
// whatever its branch has become since.
func TestHubPartitions(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	for _, e := range h.Env(t.TempDir()) {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	files := map[string]string{}
	for name, data := range remoteTexts() {
		if name == "a.txt" || name == "b.jsonl" {
			files["data/"+name] = string(data)
		}
	}
	h.Add("datasets/acme/docs", "main", 1, files)
	o := remoteOptions("hf://datasets/acme/docs/data/a.txt", "hf://datasets/acme/docs/data/b.jsonl")
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	p := planned(t, o, 4)
	for _, in := range p.Phases[0].Inputs {
		if in.Revision != remotetest.Commit(1) {
			t.Errorf("%s: revision %q", in.URI, in.Revision)
		}
	}
	h.Add("datasets/acme/docs", "main", 2, map[string]string{"data/a.txt": "other\n", "data/b.jsonl": "{}\n"})
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, p, out)
	if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, out, whole.Out, true)
}
