//go:build unix

package shard_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// sameShard is a file system where every shard of a part is the first one.
type sameShard struct{ shardfile.FS }

var partShard = regexp.MustCompile(`-p\d{5}-\d{5}\.arrow$`)

func (s sameShard) name(name string) string {
	return partShard.ReplaceAllString(name, "-p00000-00000.arrow")
}

func (s sameShard) OpenFile(name string, flag int) (shardfile.File, error) {
	return s.FS.OpenFile(s.name(name), flag)
}

func (s sameShard) Stat(name string) (fs.FileInfo, error) { return s.FS.Stat(s.name(name)) }

// TestVeryManyShards merges and reads made-up shards: DSLOAD_SHARDS of them, or a few thousand. What an
// open dataset holds does not exceed what it says.
func TestVeryManyShards(t *testing.T) {
	const each = 500
	shards := 6000
	if s := os.Getenv("DSLOAD_SHARDS"); s != "" {
		var err error
		if shards, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	parts := shards / each
	fsys, dir := sameShard{shardfile.OS()}, t.TempDir()
	makeUp(t, fsys, dir, parts, each)
	merge(t, fsys, dir, parts, 1000, json.RawMessage(`{}`))
	st, err := os.Stat(filepath.Join(dir, shardfile.ListName("train")))
	if err != nil || st.Size() > 1e9/1e7*int64(parts*each)+1000 {
		t.Errorf("a list of %d bytes for %d shards: %v", st.Size(), parts*each, err)
	}
	if manifest, err := os.Stat(filepath.Join(dir, shardfile.ManifestName)); err != nil || manifest.Size() > 2000 {
		t.Errorf("a manifest of %d bytes, %v", manifest.Size(), err)
	}
	before := heap()
	d, err := shard.OpenFS(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := split(t, d, "train")
	var row shard.Row
	for i := range int64(2000) {
		at := i * 7919 * 7919 % r.NumRows()
		if err := r.ReadRow(at, &row); err != nil {
			t.Fatal(err)
		}
	}
	held := heap() - before
	t.Logf("%d shards: %d bytes held, at most %d", r.NumShards(), held, r.Info().HeldBytes(512))
	if limit := r.Info().HeldBytes(512) + 1<<20; held > limit {
		t.Errorf("%d bytes are held, at most %d are counted", held, limit)
	}
	runtime.KeepAlive(d)
	// A list that changes while it is read is noticed, but for the pages that are held.
	f, err := os.OpenFile(filepath.Join(dir, shardfile.ListName("train")), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 96*6000), 16); err != nil {
		t.Fatal(err)
	}
	for at := int64(0); err == nil && at < 6000; at++ {
		err = r.ReadRow(at, &row)
	}
	if !errors.Is(err, shard.ErrCorrupt) || !strings.Contains(err.Error(), shardfile.ListName("train")) {
		t.Errorf("read with a list that changed: %v", err)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// makeUp writes the manifests of parts that list one shard under very many names.
func makeUp(t testing.TB, fsys shardfile.FS, dir string, parts, shards int) {
	b, _, err := dataset.OpenBuilder(fsys, dir, dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 100},
		Settings: json.RawMessage(`{}`), Part: shardfile.Part{Number: 0, Of: parts}, Plan: "plan"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Row("train", &dataset.Example{InputIDs: []uint32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	m, err := b.Finish(dataset.Provenance{State: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	one, n := m.Splits[0].Shards[0], int64(shards)
	s := &m.Splits[0]
	s.Examples, s.Tokens, s.Lengths, s.Shards = n, 3*n, [][3]int64{{3, n, 3 * n}}, make([]shard.ShardInfo, shards)
	for i := range parts {
		m.Part.Number = i
		for j := range s.Shards {
			s.Shards[j] = one
			s.Shards[j].Name = shardfile.Part{Number: i, Of: parts}.ShardName("train", j)
		}
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, shardfile.Part{Number: m.Part.Number, Of: m.Part.Of}.ManifestName()), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
