package origins

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// A split's documents are looked up in the file of the build and in those of its additions.
func TestSplit(t *testing.T) {
	dir, rng, never := t.TempDir(), rand.New(rand.NewPCG(5, 5)), func() bool { return false }
	first, second, val := corpus(rng, 3000), corpus(rng, 500), corpus(rng, 200)
	end := first[len(first)-1].ordinal + 1
	for i := range second {
		second[i].ordinal += end
	}
	m := &shard.Manifest{}
	for name, docs := range map[string][]document{shardfile.OriginsName: first, shardfile.ValOriginsName: val,
		shardfile.AdditionName(shardfile.OriginsName, 1): second} {
		if err := os.WriteFile(filepath.Join(dir, name), written(t, docs, never), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(split string, names ...string) (*Split, error) {
		m.Files = nil
		for _, name := range names {
			m.Files = append(m.Files, shard.FileInfo{Name: name})
		}
		return OpenSplit(shardfile.OS(), dir, m, split)
	}
	addition := shardfile.AdditionName(shardfile.OriginsName, 1)
	for _, c := range []struct {
		split string
		files []string
		docs  []document
	}{
		{"train", []string{addition, shardfile.OriginsName}, append(first[:len(first):len(first)], second...)},
		{"val", []string{shardfile.OriginsName}, first},
		{"val", []string{shardfile.ValOriginsName, addition, shardfile.OriginsName}, val},
	} {
		s, err := open(c.split, c.files...)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range c.docs {
			o, ok, err := s.Find(d.ordinal)
			if err != nil || !ok || o.Source != d.name || o.Record != d.record {
				t.Fatalf("%s, document %d: %+v, %t, %v; want %+v", c.split, d.ordinal, o, ok, err, d)
			}
		}
		if _, ok, err := s.Find(1 << 40); ok || err != nil {
			t.Errorf("%s: a document that does not exist: %t, %v", c.split, ok, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := open("train"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	data := written(t, first, never)
	data[len(Magic)+8+4] ^= 1 // the first page then seems to begin after every document
	if err := os.WriteFile(filepath.Join(dir, shardfile.OriginsName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := open("train", shardfile.OriginsName); err != nil {
		t.Error(err)
	} else if _, _, err := s.Find(first[0].ordinal); !errors.Is(err, shard.ErrCorrupt) {
		t.Error("a damaged head:", err)
	}
	if err := os.WriteFile(filepath.Join(dir, shardfile.OriginsName), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	var file *shardfile.FileError
	if _, err := open("train", shardfile.OriginsName); !errors.Is(err, shard.ErrCorrupt) || !errors.As(err, &file) ||
		file.File != filepath.Join(dir, shardfile.OriginsName) {
		t.Error(err)
	}
	if _, err := open("train", addition, shardfile.OriginsName); !errors.Is(err, shard.ErrCorrupt) {
		t.Error(err)
	}
	var none *Split // of a dataset without origins
	if _, ok, err := none.Find(0); ok || err != nil || none.Close() != nil {
		t.Error(ok, err)
	}
}
