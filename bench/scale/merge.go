package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// mergeCommand measures a merge. The manifests of the parts are real files. All shards that they
// list are one small file, or with -real files of three rows each that the builder of parts made.
func mergeCommand(args []string, out io.Writer) error {
	f := flag.NewFlagSet("merge", flag.ContinueOnError)
	dir := f.String("dir", "", "an empty folder for the parts")
	parts := f.Int("parts", 100, "parts")
	shards := f.Int("shards", 100, "shards of each")
	real := f.Bool("real", false, "build every shard as a file of its own, and compare all bytes")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("-dir names the folder")
	}
	fsys, err := makeParts(*dir, *parts, *shards, *real)
	if err != nil {
		return err
	}
	start := time.Now()
	m, err := dataset.OpenMerger(context.Background(), fsys, *dir, dataset.MergeOptions{Partitions: *parts, Plan: "bench",
		Settings: json.RawMessage("{}"), Quick: !*real, Workers: 2,
		PartSettings: func(int) (json.RawMessage, error) { return json.RawMessage("{}"), nil }})
	if err != nil {
		return err
	}
	defer m.Close()
	checked := time.Since(start)
	res, err := m.Finish(func([]string) (dataset.Provenance, error) { return dataset.Provenance{}, nil }, nil)
	if err != nil {
		return err
	}
	size, err := metadata(*dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d parts, %d shards: checked in %.1f s, merged in %.1f s, manifest and list of %.1f MB, "+
		"peak memory %s\n", *parts,
		res.Shards[0], checked.Seconds(), time.Since(start).Seconds(), float64(size)/1e6, peak())
	return nil
}

// metadata returns the size of the manifest and of the list of shards, if there is one.
func metadata(dir string) (size int64, err error) {
	for _, name := range []string{shardfile.ManifestName, shardfile.ListName("train")} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			size += info.Size()
		} else if name == shardfile.ManifestName || !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return size, nil
}

// peak returns the peak memory of the process.
func peak() string {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}

// makeParts writes the manifests of parts. One part is built for real; the others repeat its shard.
func makeParts(dir string, parts, shards int, real bool) (shardfile.FS, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for i := 0; real && i < parts; i++ {
		if err := buildPart(dir, i, parts, shards); err != nil {
			return nil, err
		}
	}
	if real {
		return shardfile.OS(), nil
	}
	model := dir + ".model"
	b, _, err := dataset.OpenBuilder(shardfile.OS(), model, dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 100},
		Part: shardfile.Part{Number: 0, Of: parts}, Plan: "bench"})
	if err != nil {
		return nil, err
	}
	if err := b.Row("train", &dataset.Example{InputIDs: []uint32{1, 2, 3}}); err != nil {
		return nil, err
	}
	m, err := b.Finish(dataset.Provenance{State: json.RawMessage("{}")})
	if err != nil {
		return nil, err
	}
	one := m.Splits[0].Shards[0]
	for i := range parts {
		if err := writePart(dir, m, one, i, parts, shards); err != nil {
			return nil, err
		}
	}
	return &repeated{FS: shardfile.OS(), path: filepath.Join(model, one.Name)}, nil
}

// unsynced is a file system that does not wait for the disk.
type unsynced struct{ shardfile.FS }

type unsyncedFile struct{ shardfile.File }

func (unsynced) SyncDir(string) error { return nil }
func (unsyncedFile) Sync() error      { return nil }
func (u unsynced) OpenFile(name string, flag int) (shardfile.File, error) {
	f, err := u.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

// buildPart builds part i of the given number of shards, with three rows in each.
func buildPart(dir string, i, parts, shards int) error {
	b, _, err := dataset.OpenBuilder(unsynced{shardfile.OS()}, dir,
		dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 60000},
			ShardBytes: 4 << 10, Part: shardfile.Part{Number: i, Of: parts}, Plan: "bench"})
	if err != nil {
		return err
	}
	ids := make([]uint32, 300)
	for row := range 3 * shards {
		document := 3*shards*i + row
		for k := range ids {
			ids[k] = uint32((document*31 + k) % 60000)
		}
		if err := b.Row("train", &dataset.Example{InputIDs: ids, Document: int64(document)}); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	_, err = b.Finish(dataset.Provenance{State: json.RawMessage("{}")})
	return err
}

// writePart writes the manifest of part i.
func writePart(dir string, model *shard.Manifest, one shard.ShardInfo, i, parts, shards int) error {
	p := *model
	p.Part = &shard.PartitionInfo{Number: i, Of: parts, Plan: "bench", State: json.RawMessage("{}")}
	s := p.Splits[0]
	n := int64(shards)
	s.Examples, s.Tokens, s.Shards = n*one.Rows, n*one.Tokens, make([]shard.ShardInfo, shards)
	s.Lengths = [][3]int64{{3, n, 3 * n}}
	for j := range s.Shards {
		s.Shards[j] = one
		s.Shards[j].Name = shardfile.Part{Number: i, Of: parts}.ShardName("train", j)
	}
	p.Splits = []shard.SplitInfo{s}
	data, err := p.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, shardfile.Part{Number: i, Of: parts}.ManifestName()), data, 0o666)
}

// repeated is a file system where every name of a shard leads to one file.
type repeated struct {
	shardfile.FS
	path string
}

func (r *repeated) OpenFile(name string, flag int) (shardfile.File, error) {
	if strings.HasSuffix(name, ".arrow") {
		name = r.path
	}
	return r.FS.OpenFile(name, flag)
}

func (r *repeated) Stat(name string) (fs.FileInfo, error) {
	if strings.HasSuffix(name, ".arrow") {
		name = r.path
	}
	return r.FS.Stat(name)
}

// readCommand measures how a merged folder with the shards of mergeCommand is opened and read.
func readCommand(args []string, out io.Writer) error {
	f := flag.NewFlagSet("read", flag.ContinueOnError)
	dir := f.String("dir", "", "a folder that merge left")
	rows := f.Int64("rows", 10_000, "rows to read, from all over the split")
	memory := f.Int64("memory", serve.MinMemory>>20, "the server's cap in MiB")
	real := f.Bool("real", false, "every shard is a file of its own")
	if err := f.Parse(args); err != nil {
		return err
	}
	fsys := shardfile.OS()
	if !*real {
		fsys = &repeated{FS: fsys, path: filepath.Join(*dir+".model",
			shardfile.Part{Of: shardfile.MaxParts}.ShardName("train", 0))}
	}
	start := time.Now()
	r, err := serve.Open(serve.Options{FS: fsys, Datasets: []string{*dir}, Memory: *memory << 20})
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := serve.NewServer(r, serve.Options{FS: fsys, Memory: *memory << 20}); err != nil {
		return err
	}
	opened := time.Since(start)
	d, err := shard.OpenFS(fsys, *dir)
	if err != nil {
		return err
	}
	defer d.Close()
	split, err := d.Split("train")
	if err != nil {
		return err
	}
	start = time.Now()
	var row shard.Row
	rnd := rand.New(rand.NewPCG(1, 1))
	for range *rows {
		if err := split.ReadRow(rnd.Int64N(split.NumRows()), &row); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d shards: opened in %.1f s under a cap of %d MiB, which counts %d bytes for their entries; "+
		"%d rows of any shard in %.1f s; peak memory %s\n",
		split.NumShards(), opened.Seconds(), *memory, split.Info().HeldBytes(256), *rows,
		time.Since(start).Seconds(), peak())
	return nil
}
