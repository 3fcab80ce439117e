package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/shardfile"
)

// arrowFile is an Arrow file, or stream, of a column of text in record batches of different sizes.
func arrowFile(t *testing.T, rows int, stream bool) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "text", Type: arrow.BinaryTypes.String}}, nil)
	var out bytes.Buffer
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	if stream {
		w = ipc.NewWriter(&out, ipc.WithSchema(schema))
	} else {
		w = must(ipc.NewFileWriter(&out, ipc.WithSchema(schema)))
	}
	for at, n := 0, 0; at < rows; at += n {
		n = min(rows-at, 7+at%31)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range n {
			b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("row %d of a table%s", at+i,
				strings.Repeat(" and more", (at+i)%23)))
		}
		if err := w.Write(b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// columnSources are files of columns in several groups of rows, between files of text, and a folder
// that save_to_disk wrote.
func columnSources(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	groups := must(os.ReadFile(filepath.Join("testdata", "groups.parquet")))
	for name, data := range map[string][]byte{
		"a.txt": []byte("one line\n\nand another\n"), "b.parquet": groups, "c.arrow": arrowFile(t, 400, false),
		"d.arrow": arrowFile(t, 300, true), "saved/data-00000-of-00002.arrow": arrowFile(t, 90, true),
		"saved/data-00001-of-00002.arrow": arrowFile(t, 110, true), "saved/dataset_info.json": []byte("{}"),
		"saved/state.json": []byte(`{"_data_files": [{"filename": "data-00000-of-00002.arrow"}, {"filename": "data-00001-of-00002.arrow"}]}`),
		"e.jsonl":          []byte("{\"text\": \"a record\"}\n\n{\"text\": \"the last one\"}"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, path, data)
	}
	var out []string
	for _, name := range []string{"a.txt", "b.parquet", "c.arrow", "d.arrow", "saved", "e.jsonl"} {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

// TestColumnPartitions cuts files of columns between groups of rows.
func TestColumnPartitions(t *testing.T) {
	sources := columnSources(t)
	for _, c := range []struct {
		name     string
		o        option.Options
		ns       []int
		counters bool
	}{
		{"plain", option.Options{}, []int{1, 3, 17, 60}, true},
		{"val", option.Options{Settings: option.Settings{MaxValExamples: 50}}, []int{1, 6}, true},
		{"copies", option.Options{Settings: option.Settings{Dedup: filter.Exact}}, []int{5}, true},
		{"max-examples", option.Options{Settings: option.Settings{MaxExamples: 711}}, []int{6}, false},
		{"damage is skipped", option.Options{Settings: option.Settings{OnBadRecord: option.SkipBadRecord}},
			[]int{6}, true},
	} {
		if testing.Short() && c.name != "val" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			o := c.o
			o.Sources, o.LoadedTokenizer, o.MaxLength, o.ShardBytes, o.Memory, o.Workers = sources, small(), 48, 16<<10,
				64<<20, 2
			whole := o
			whole.Out = filepath.Join(t.TempDir(), "whole")
			mustBuild(t, whole)
			for _, n := range fewer(c.ns) {
				out := filepath.Join(t.TempDir(), "parts")
				p := planned(t, o, n)
				inside := map[source.Format]int{}
				for i := range p.Parts {
					if at := p.Parts[i].From; at.Offset > 0 {
						inside[p.Phases[0].Inputs[at.Input].Format]++
					}
				}
				if n >= 5 && inside[source.Arrow] == 0 || n >= 17 && inside[source.Parquet] == 0 {
					t.Errorf("N=%d: partitions that begin inside files: %v", n, inside)
				}
				buildParts(t, p, out)
				if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
					t.Fatal(err)
				}
				sameDataset(t, out, whole.Out, c.counters)
			}
		})
	}
}

// afterCheckpoints calls a function after each checkpoint.
type afterCheckpoints struct {
	shardfile.FS
	call func()
}

func (f afterCheckpoints) Rename(oldName, newName string) error {
	err := f.FS.Rename(oldName, newName)
	if strings.HasSuffix(newName, ".checkpoint") {
		f.call()
	}
	return err
}

// TestColumnPartIsResumed interrupts the partition in the middle of a file of columns again and
// again.
func TestColumnPartIsResumed(t *testing.T) {
	if testing.Short() {
		t.Skip("short: TestColumnPartitions builds parts of such files")
	}
	path := filepath.Join(t.TempDir(), "a.arrow")
	put(t, path, arrowFile(t, 60_000, true))
	o := option.Options{Settings: option.Settings{Sources: []string{path}, MaxLength: 48},
		Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20, Workers: 1}}
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	p := planned(t, o, 3)
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, p, out, 1)
	runs := 0
	for {
		part := must(p.Partition(1))
		o := part.Options()
		o.Out, o.LoadedTokenizer, o.Memory, o.Workers = out, small(), 64<<20, 1
		o.CheckpointEvery, o.CheckpointInterval = 1, 1
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		o.FS = afterCheckpoints{shardfile.OS(), func() {
			if n++; n > 2 {
				cancel()
			}
		}}
		_, err := RunPartition(ctx, o, part)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		if runs++; runs > 100 {
			t.Fatal("it makes no progress")
		}
	}
	if runs < 3 {
		t.Errorf("it was interrupted %d times", runs)
	}
	if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, out, whole.Out, true)
}

// TestColumnPartRefusesChanges changes a file of columns without changing its size.
func TestColumnPartRefusesChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	data := must(os.ReadFile(filepath.Join("testdata", "groups.parquet")))
	put(t, path, data)
	o := option.Options{Settings: option.Settings{Sources: []string{path}},
		Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20, Workers: 1}}
	p := planned(t, o, 3)
	other := bytes.Replace(data, []byte("parquet-cpp"), []byte("parquet-cPP"), 1)
	put(t, path, other)
	var changed *cause.ChangedError
	for part := range 3 {
		if _, err := buildPart(p, part, filepath.Join(dir, "out")); !errors.As(err, &changed) || !changed.Planned {
			t.Errorf("part %d: %v", part, err)
		}
	}
}

// TestRemoteColumnPartitions reads the groups of rows of a remote file, each by the partition that it
// belongs to.
func TestRemoteColumnPartitions(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	data := must(os.ReadFile(filepath.Join("testdata", "groups.parquet")))
	srv.Put("/a.parquet", remotetest.File{Data: data})
	o := remoteOptions(srv.URL + "/a.parquet")
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	p := planned(t, o, 4)
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, p, out)
	if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, out, whole.Out, true)
	srv.Put("/a.parquet", remotetest.File{Data: data, ETag: `"another"`})
	var changed *cause.ChangedError
	if _, err := buildPart(p, 1, filepath.Join(t.TempDir(), "fresh")); !errors.As(err, &changed) ||
		changed.What != "ETag" {
		t.Errorf("another ETag: %v", err)
	}
}
