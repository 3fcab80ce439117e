package job

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsload/dsload/internal/ingest/source"
)

// TestRunsAreRecords: records that are read many at a time are those that are read one by one, and so is the position
// after each job.
func TestRunsAreRecords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 7))
	lines := []string{"", " ", "\t\r", "\u00a0", "\r", "a", "plain text", "漢字 is not blank", "ends with\r", " begins with a space",
		strings.Repeat("long ", 20_000), `{"text":"a"}`, "{\"text\":\"b\"}\r", strings.Repeat("x", 5000)}
	dir := t.TempDir()
	var paths []string
	for i := range 4 {
		var text strings.Builder
		for range 4000 {
			n := rnd.IntN(len(lines) * 3)
			if n >= len(lines) { // mostly lines that need no care
				n = 5 + n%3
			}
			if i == 3 { // mostly blank ones
				n %= 6
			}
			text.WriteString(lines[n])
			text.WriteByte('\n')
		}
		text.WriteString("the last one")
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.WriteFile(paths[i], []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tables := []string{columns(t, filepath.Join(dir, "a.arrow"), lines), columns(t, filepath.Join(dir, "b.arrow"), lines)}
	for _, format := range []source.Format{source.Text, source.JSONL, source.Arrow} {
		framing := source.Framing{}
		if format == source.Arrow {
			paths, framing.TextField, framing.PieceBytes, framing.MaxPieceBytes = tables, "text", 6000, 12_000
		}
		for _, most := range []int{1, 2, 37, MaxRecords} {
			set, err := source.Open(t.Context(), source.Options{Args: paths, Format: format, Framing: framing})
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			one, many := reader(t, set), reader(t, set)
			inRuns := 0
			for {
				j := &Job{}
				j.Raw, err = many.Next(j.Raw, &j.AddDocument(0).Record)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				j.Documents[0].Raw = Span{End: len(j.Raw)}
				for range 2 {
					if len(j.Documents) < most {
						j.AddRun(many, most, 0)
					}
				}
				inRuns += len(j.Documents) - 1
				if len(j.Documents) > most {
					t.Fatalf("%d records in a job of %d", len(j.Documents), most)
				}
				j.Unroll()
				for i := range j.Documents {
					d := &j.Documents[i]
					var want source.Record
					data, err := one.Next(nil, &want)
					if err != nil || string(data) != string(j.Raw[d.Raw.Start:d.Raw.End]) || !reflect.DeepEqual(d.Record, want) {
						t.Fatalf("%s, %d: %v\n%+v %.40q, want\n%+v %.40q", format, most, err, d.Record, j.Raw[d.Raw.Start:d.Raw.End],
							want, data)
					}
				}
				if got, want := many.Position(), one.Position(); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, %d: position %+v, want %+v", format, most, got, want)
				}
			}
			if _, err := one.Next(nil, new(source.Record)); err != io.EOF {
				t.Errorf("%s, %d: records are left: %v", format, most, err)
			}
			if most > 2 && inRuns < 3000 {
				t.Errorf("%s, %d: %d records in runs", format, most, inRuns)
			}
		}
	}
}

func reader(t *testing.T, s *source.Set) *source.Reader {
	r, err := s.Reader(source.Position{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// columns writes a file of columns whose texts are lines, and nulls among them, in groups of rows.
func columns(t *testing.T, path string, lines []string) string {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	texts := rows.Field(0).(*array.StringBuilder)
	for i := range 5000 {
		switch {
		case i%97 == 0:
			texts.AppendNull()
		case i%13 == 0:
			texts.Append(lines[i/13%len(lines)])
		default:
			texts.Append(fmt.Sprint("row\n", i, "\r"))
		}
		if i%700 == 699 || i == 4999 {
			if err := w.Write(rows.NewRecordBatch()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
