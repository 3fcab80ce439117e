package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/dsload/dsload/shard"
)

// mergeCommand measures a merge of made-up parts. The manifests of the parts are real files; all
// shards that they list are one small file.
func mergeCommand(args []string, out io.Writer) error {
	f := flag.NewFlagSet("merge", flag.ContinueOnError)
	dir := f.String("dir", "", "an empty folder for the parts")
	parts := f.Int("parts", 100, "parts")
	shards := f.Int("shards", 100, "shards of each")
	real := f.Bool("real", false, "write every shard as a file of its own, and compare all bytes")
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
	m, err := shard.OpenMerger(context.Background(), fsys, *dir, shard.MergeOptions{Partitions: *parts, Plan: "bench",
		Settings: json.RawMessage("{}"), Quick: !*real, Workers: 2,
		PartSettings: func(int) (json.RawMessage, error) { return json.RawMessage("{}"), nil }})
	if err != nil {
		return err
	}
	defer m.Close()
	checked := time.Since(start)
	res, err := m.Finish(func([]string) (shard.Provenance, error) { return shard.Provenance{}, nil }, nil)
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(*dir, shard.ManifestName))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d parts, %d shards: checked in %.1f s, merged in %.1f s, manifest of %.1f MB, peak memory %s\n", *parts,
		res.Shards[0], checked.Seconds(), time.Since(start).Seconds(), float64(info.Size())/1e6, peak())
	return nil
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
func makeParts(dir string, parts, shards int, real bool) (shard.FS, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	model := dir + ".model"
	b, _, err := shard.OpenBuilder(shard.OS(), model, shard.BuilderOptions{Schema: shard.Schema{VocabSize: 100},
		Part: shard.Part{Number: 0, Of: parts}, Plan: "bench"})
	if err != nil {
		return nil, err
	}
	if err := b.Append("train", &shard.Example{InputIDs: []uint32{1, 2, 3}}); err != nil {
		return nil, err
	}
	m, err := b.Finish(shard.Provenance{State: json.RawMessage("{}")})
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(model, m.Splits[0].Shards[0].Name))
	if err != nil {
		return nil, err
	}
	one := m.Splits[0].Shards[0]
	for i := range parts {
		if err := writePart(dir, m, one, i, parts, shards); err != nil {
			return nil, err
		}
		for j := 0; real && j < shards; j++ {
			name := filepath.Join(dir, shard.Part{Number: i, Of: parts}.ShardName("train", j))
			if err := os.WriteFile(name, data, 0o666); err != nil {
				return nil, err
			}
		}
	}
	if real {
		return shard.OS(), nil
	}
	return &repeated{FS: shard.OS(), path: filepath.Join(model, one.Name)}, nil
}

// writePart writes the manifest of part i.
func writePart(dir string, model *shard.Manifest, one shard.ShardInfo, i, parts, shards int) error {
	p := *model
	p.Part = &shard.PartInfo{Number: i, Of: parts, Plan: "bench", State: json.RawMessage("{}")}
	s := p.Splits[0]
	n := int64(shards)
	s.Examples, s.Tokens, s.Shards = n*one.Rows, n*one.Tokens, make([]shard.ShardInfo, shards)
	s.Lengths = [][3]int64{{3, n, 3 * n}}
	for j := range s.Shards {
		s.Shards[j] = one
		s.Shards[j].Name = shard.Part{Number: i, Of: parts}.ShardName("train", j)
	}
	p.Splits = []shard.SplitInfo{s}
	data, err := p.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, p.Part.ManifestNameOf()), data, 0o666)
}

// repeated is a file system where every name of a shard leads to one file.
type repeated struct {
	shard.FS
	path string
}

var shardName = regexp.MustCompile(`-p\d{5}-\d{5}\.arrow$`)

func (r *repeated) OpenFile(name string, flag int) (shard.File, error) {
	if shardName.MatchString(name) {
		name = r.path
	}
	return r.FS.OpenFile(name, flag)
}

func (r *repeated) Stat(name string) (fs.FileInfo, error) {
	if shardName.MatchString(name) {
		name = r.path
	}
	return r.FS.Stat(name)
}
