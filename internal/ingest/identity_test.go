package ingest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// A dataset is of the identity that it was built by, and of no other.
func TestCachedEntryIsItsKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.jsonl", `{"text":"one text"}`+"\n")
	write("b.txt", "another text\n")
	identify := func(length int, sources ...string) *setup.Identity {
		o := option.Options{Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20},
			Settings: option.Settings{Sources: sources, MaxLength: length, MaxExamples: 9}}
		id, err := setup.Identify(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, sources := range [][]string{{dir + "/a.jsonl"}, {dir + "/b.txt", dir + "/a.jsonl"}, {dir}, {dir + "/*.txt"},
		{"synth://wikitext?seed=5"}} {
		id := identify(64, sources...)
		o, fsys := id.Options, shardtest.New()
		o.Out, o.FS = "data", fsys
		mustBuild(t, o)
		m, err := shard.ReadManifest(fsys, "data")
		if err != nil {
			t.Fatal(err)
		}
		if err := id.CheckFinished(m); err != nil {
			t.Errorf("%v: %v", sources, err)
		}
		if identify(65, sources...).CheckFinished(m) == nil {
			t.Errorf("%v: the length differs", sources)
		}
		if identify(64, append(sources, dir+"/b.txt")...).CheckFinished(m) == nil {
			t.Errorf("%v: a source more", sources)
		}
		write("b.txt", "another text of another size, for "+sources[0]+"\n")
		hasB := len(m.Sources) > 1 || sources[0] == dir+"/*.txt"
		if changed := identify(64, sources...).CheckFinished(m) != nil; changed != hasB {
			t.Errorf("%v: a changed source: %v", sources, changed)
		}
	}
}
