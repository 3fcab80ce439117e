package ingest

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// TestHeldOutAlike: which documents are held out does not depend on the format of the sources, nor on what else their
// records hold.
func TestHeldOutAlike(t *testing.T) {
	effort.RacedElsewhere(t)
	dir := t.TempDir()
	var lines, array, wide, table, packed bytes.Buffer
	rows, zipped := csv.NewWriter(&table), gzip.NewWriter(&packed)
	array.WriteByte('[')
	for i := range 3000 {
		text := fmt.Sprintf("document %d%s, \"quoted\"", i, strings.Repeat(" and more", i*i%40))
		record, err := json.Marshal(map[string]any{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			rows.Write([]string{"text"})
		} else {
			array.WriteByte(',')
		}
		rows.Write([]string{text})
		array.Write(record)
		fmt.Fprintf(&lines, "%s\n", record)
		fmt.Fprintf(zipped, "%s\n", record)
		fmt.Fprintf(&wide, "{\"id\":%d,\"note\":%q,%s\n", i, strings.Repeat("n", 300), record[1:])
	}
	array.WriteByte(']')
	rows.Flush()
	zipped.Close()
	for _, o := range []option.Settings{{MaxValExamples: 20, MaxLength: 16}, {MaxValExamples: 150, MaxLength: 64},
		{MaxValExamples: 20, MaxLength: 64, Pack: pack.BFDSplit}} {
		var want []int64
		for name, data := range map[string][]byte{"a.jsonl": lines.Bytes(), "a.json": array.Bytes(), "wide.jsonl": wide.Bytes(),
			"a.csv": table.Bytes(), "a.jsonl.gz": packed.Bytes()} {
			path := filepath.Join(dir, name)
			put(t, path, data)
			fsys := shardtest.New()
			o.Sources = []string{path}
			s := mustBuild(t, option.Options{Out: "data", Settings: o,
				Resources: option.Resources{LoadedTokenizer: small(), FS: fsys}})
			_, held := splitRows(t, fsys, "data", splitVal)
			if int64(len(held)) != o.MaxValExamples || s.Splits[0].Examples == 0 {
				t.Errorf("%s: %d examples are held out", name, len(held))
			}
			if want == nil {
				want = held
			}
			if !slices.Equal(held, want) {
				t.Errorf("%+v, %s: held out are %v, elsewhere %v", o, name, held, want)
			}
		}
	}
}

// TestEmptyCopies: a document without text is counted as that alone, also where its text is one of those held out.
func TestEmptyCopies(t *testing.T) {
	copies := int64(0)
	for n := range 24 {
		var data strings.Builder
		for i := range 4 + n/3 {
			fmt.Fprintf(&data, "{\"text\":\"w%d\"}\n{\"text\":\"\"}\n", i/2)
		}
		path := filepath.Join(t.TempDir(), "a.jsonl")
		put(t, path, []byte(data.String()))
		s := mustBuild(t, option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings: option.Settings{Sources: []string{path}, MaxValExamples: int64(1 + n%3)}})
		rows := int64(0)
		for _, split := range s.Splits {
			rows += split.Examples
		}
		if rows+s.Empty+s.Copies != s.Documents || s.Copies != s.CopiedExamples {
			t.Errorf("%d documents: %d rows, %d empty, %d copies with %d rows", s.Documents, rows, s.Empty, s.Copies, s.CopiedExamples)
		}
		copies += s.Copies
	}
	if copies == 0 {
		t.Error("nothing was a copy")
	}
}
