package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

type fataler interface{ Fatal(...any) }

// readWithArrow reads the rows of a split with the Arrow project's own library.
func readWithArrow(t fataler, fsys *shardtest.FS, sp shard.SplitInfo) (out []*dataset.Example) {
	files := fsys.Files()
	for _, sh := range sp.Shards {
		rd, err := ipc.NewFileReader(bytes.NewReader(files["/d/"+sh.Name]))
		if err != nil {
			t.Fatal(sh.Name, err)
		}
		for {
			rec, err := rd.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(sh.Name, err)
			}
			if rec.NumRows() > 1024 {
				t.Fatal("batch of", rec.NumRows(), "rows")
			}
			for i := range int(rec.NumRows()) {
				e := &dataset.Example{}
				for c := range int(rec.NumCols()) {
					readCell(t, e, rec.ColumnName(c), rec.Column(c), i)
				}
				out = append(out, e)
			}
		}
		rd.Close()
	}
	return out
}

func readCell(t fataler, e *dataset.Example, name string, col any, i int) {
	var values any
	var a, b int64
	if l, ok := col.(*array.List); ok {
		a, b = l.ValueOffsets(i)
		values = l.ListValues()
	}
	ids := func() (out []uint32) {
		for k := int(a); k < int(b); k++ {
			switch v := values.(type) {
			case *array.Uint16:
				out = append(out, uint32(v.Value(k)))
			case *array.Int32:
				out = append(out, uint32(v.Value(k)))
			default:
				t.Fatal(fmt.Sprintf("%s is a list of %T", name, values))
			}
		}
		return out
	}
	switch name {
	case "input_ids":
		e.InputIDs = ids()
	case "labels":
		e.Labels = ids()
	case "loss_mask":
		for k := int(a); k < int(b); k++ {
			e.LossMask = append(e.LossMask, values.(*array.Boolean).Value(k))
		}
	case "segments":
		for k := int(a); k < int(b); k++ {
			e.Segments = append(e.Segments, values.(*array.Int32).Value(k))
		}
	case "document":
		e.Document = col.(*array.Int64).Value(i)
	case "part":
		e.Part = col.(*array.Int32).Value(i)
	default:
		t.Fatal("column " + name)
	}
}

func TestArrowReadsShards(t *testing.T) {
	effort.RacedElsewhere(t)
	for name, c := range corpora {
		t.Run(name, func(t *testing.T) {
			fsys := c.build(t)
			m, err := shard.ReadManifest(fsys, "/d")
			if err != nil {
				t.Fatal(err)
			}
			for _, sp := range m.Splits {
				if diff := cmp.Diff(readWithArrow(t, fsys, sp), normals(c.rows(sp.Name))); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}
