package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// testdata/scores.parquet has 20 row groups of 20 rows, the same as scoresAsLines:
//
//	t = pa.table({"text": [f"row {i} of a table" for i in range(400)],
//	              "score": pa.array([None if i % 7 == 3 else i // 20 for i in range(400)], pa.int32())})
//	pq.write_table(t, "scores.parquet", row_group_size=20, compression="none", use_dictionary=False,
//	               store_schema=False)
const scoresFile = "testdata/scores.parquet"

func scoresAsLines() []byte {
	var b bytes.Buffer
	for i := range 400 {
		score := fmt.Sprint(i / 20)
		if i%7 == 3 {
			score = "null"
		}
		fmt.Fprintf(&b, "{\"text\": \"row %d of a table\", \"score\": %s}\n", i, score)
	}
	return b.Bytes()
}

func whereOptions(source string, where ...string) option.Options {
	return option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), Workers: 2},
		Settings: option.Settings{Sources: []string{source}, MaxLength: 48, Filter: option.Filter{Where: where}}}
}

// TestGroupsLeftOut compares a file of which groups of rows are left out unread with lines of the same rows.
func TestGroupsLeftOut(t *testing.T) {
	dir := t.TempDir()
	data := must(os.ReadFile(scoresFile))
	begin, end := bytes.Index(data, []byte("row 20 of")), bytes.Index(data, []byte("row 279 of"))
	clear(data[begin:end]) // groups 1 to 13
	damaged := filepath.Join(dir, "damaged.parquet")
	put(t, damaged, data)
	lines := filepath.Join(dir, "rows.jsonl")
	put(t, lines, scoresAsLines())
	for _, c := range []struct {
		source string
		where  []string
	}{
		{damaged, []string{"score>=14"}}, {damaged, []string{"score>=14", "score!=17", "score<19"}},
		{damaged, []string{"score<=0.5"}}, {scoresFile, []string{"score!=3"}},
		{scoresFile, []string{"score<3", "text!=row 7 of a table"}},
		{scoresFile, []string{"text>=row 9", "score=4", "score=19"}}, {scoresFile, []string{"score=7"}},
	} {
		var rows [2][][]uint32
		var documents [2][]int64
		var counts [2]*report.Summary
		for i, source := range []string{c.source, lines} {
			fsys := shardtest.New()
			o := whereOptions(source, c.where...)
			o.FS = fsys
			counts[i] = mustBuild(t, o)
			rows[i], documents[i] = splitRows(t, fsys, o.Out, splitTrain)
		}
		if !slices.EqualFunc(rows[0], rows[1], slices.Equal) || !slices.Equal(documents[0], documents[1]) ||
			len(rows[0]) == 0 {
			t.Errorf("%v: documents %v, want %v", c.where, documents[0], documents[1])
		}
		if a, b := counts[0], counts[1]; a.Documents != 400 || b.Documents != 400 ||
			!maps.Equal(a.DroppedBy, b.DroppedBy) {
			t.Errorf("%v: %d documents, %v dropped, want %v", c.where, a.Documents, a.DroppedBy, b.DroppedBy)
		}
	}
	if _, err := Run(context.Background(), func() option.Options {
		o := whereOptions(damaged, "score=14")
		o.FS = shardtest.New()
		return o
	}()); err == nil {
		t.Error("without a comparison all groups are read, as the checksums of earlier versions are over all")
	}
}

// TestPreviewOfGroupsLeftOut counts what a preview passes over.
func TestPreviewOfGroupsLeftOut(t *testing.T) {
	p, err := Preview(context.Background(), whereOptions(scoresFile, "score>=18"), 30)
	if err != nil {
		t.Fatal(err)
	}
	documents := p.Inputs[0].Documents
	if first := documents[0]; first.Record != 1 || first.Unread != 20 ||
		!strings.Contains(first.LeftOut.String(), "where") {
		t.Errorf("%+v", first)
	}
	if d := documents[19]; d.Record != 362 || d.Unread != 0 || d.NumExamples != 1 {
		t.Errorf("%+v", d)
	}
	if e := p.Estimate; e.Documents != 400 || e.Kept != 34 {
		t.Errorf("%+v", e)
	}
}

// TestGroupsLeftOutOfParts cuts a file of which groups are left out, and interrupts a build of it.
func TestGroupsLeftOutOfParts(t *testing.T) {
	whole := whereOptions(scoresFile, "score>=4", "score!=9", "score<16")
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	for _, n := range []int{2, 9} {
		o := whole
		o.Out = ""
		p := planned(t, o, n)
		out := filepath.Join(t.TempDir(), "parts")
		buildParts(t, p, out)
		if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
			t.Fatal(err)
		}
		sameDataset(t, out, whole.Out, true)
	}

	resumed := whole
	resumed.Out, resumed.Workers, resumed.CheckpointEvery, resumed.CheckpointInterval = filepath.Join(t.TempDir(),
		"again"), 1, 1, 1
	resumed.Memory = 64 << 20
	runs := 0
	for {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		resumed.FS = afterCheckpoints{shardfile.OS(), func() {
			if n++; n > 1 {
				cancel()
			}
		}}
		_, err := Run(ctx, resumed)
		cancel()
		if err == nil {
			break
		}
		if runs++; !errors.Is(err, ErrInterrupted) || runs > 100 {
			t.Fatal(err)
		}
	}
	sameDataset(t, resumed.Out, whole.Out, true)
	if s := mustBuild(t, whole); !s.AlreadyBuilt {
		t.Error("a second run builds it again")
	}
}

// TestFolderColumns builds from folders that are named KEY=VALUE.
func TestFolderColumns(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, path, []byte(data))
	}
	for _, lang := range []string{"en", "de", "__HIVE_DEFAULT_PARTITION__"} {
		for _, year := range []int{2018, 2021} {
			write(fmt.Sprintf("lang=%s/year=%d/part-0.jsonl", lang, year),
				fmt.Sprintf("{\"text\": \"%s %d\", \"lang\": \"xx\", \"score\": 1}\n{\"text\": \"second\", \"score\": 2}\n", lang, year))
		}
	}
	write("lang=a%2Fb/year=07/part-0.txt", "a line\n")
	for where, want := range map[string]string{
		"lang=en":                      "en 2018,second,en 2021,second",
		"lang=xx":                      "no document is left: `where` leaves out 7 files unread, by the names of folders (",
		"lang=en year<2020":            "en 2018,second",
		"lang!=en year>=2020":          "de 2021,second",
		"lang=null year<=2018":         "__HIVE_DEFAULT_PARTITION__ 2018,second",
		"year=7":                       "a line",
		"lang=a/b":                     "a line",
		"lang=en score>=2":             "second,second",
		"lang=en score>=3":             "no document is left: documents left out by `where`: 4 of 4 read",
		"score>=2":                     "records of the format text have no fields",
		"lang!=a/b score>=2 year=2018": "second,second",
		"lang=en none=3":               `no record has the field "none"`,
	} {
		o := whereOptions(dir, strings.Fields(where)...)
		fsys := shardtest.New()
		o.FS = fsys
		_, err := Run(context.Background(), o)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", where, err, want)
			}
			continue
		}
		rows, _ := splitRows(t, fsys, o.Out, splitTrain)
		var texts []string
		for _, ids := range rows {
			texts = append(texts, string(small().Decode(ids)))
		}
		if got := strings.Join(texts, ","); got != want {
			t.Errorf("%s: %s, want %s", where, got, want)
		}
	}
	// A file that is named is left out like one of a folder.
	o := whereOptions(filepath.Join(dir, "lang=de/year=2018/part-0.jsonl"), "lang=en")
	o.Sources = append(o.Sources, filepath.Join(dir, "lang=en/year=2018/part-0.jsonl"))
	fsys := shardtest.New()
	o.FS = fsys
	s := mustBuild(t, o)
	if s.Documents != 2 || !slices.ContainsFunc(s.Notes, func(n fault.Text) bool {
		return strings.Contains(n.String(), " leaves out 1 file unread")
	}) {
		t.Errorf("%d documents, notes %v", s.Documents, s.Notes)
	}
}
