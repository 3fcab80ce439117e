package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/preview"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// checkPreview compares a preview of all documents with the build.
func checkPreview(t *testing.T, o option.Options) *preview.Preview {
	t.Helper()
	fsys := shardtest.New()
	o.FS, o.Out, o.LoadedTokenizer = fsys, "data", small()
	p, err := Preview(context.Background(), o, preview.MaxDocuments)
	if err != nil {
		t.Fatal(err)
	}
	if files := fsys.Files(); len(files) > 0 {
		t.Fatalf("a preview wrote %d files", len(files))
	}
	s := mustBuild(t, o)
	at, rows := map[string]int{}, map[string][][]uint32{}
	for _, split := range []string{splitTrain, splitVal} {
		rows[split], _ = splitRows(t, fsys, "data", split)
	}
	var documents, kept int64
	for _, in := range p.Inputs {
		for _, d := range in.Documents {
			documents++
			if d.LeftOut.IsZero() != (d.NumExamples > 0) || d.NumExamples > 0 != (d.Split != "") {
				t.Errorf("row %d makes %d rows of %q and is left out because %q", d.Record, d.NumExamples,
					d.Split, d.LeftOut)
			}
			if d.NumExamples == 0 {
				continue
			}
			kept++
			for i, row := range d.Examples {
				if want := rows[d.Split][at[d.Split]+i]; !slices.Equal(row.InputIDs, want) {
					t.Fatalf("row %d, part %d: %d tokens, and the build writes %d", d.Record, i, len(row.InputIDs),
						len(want))
				}
			}
			at[d.Split] += d.NumExamples
		}
	}
	var examples int64
	for _, split := range s.Splits {
		examples += split.Examples
		if int64(at[split.Name]) != split.Examples {
			t.Errorf("%d rows of %s, and the build has %d", at[split.Name], split.Name, split.Examples)
		}
	}
	if e := p.Estimate; !e.Exact || e.Documents != s.Documents || e.Documents != documents || e.Kept != kept ||
		e.Examples != examples {
		t.Errorf("%+v for %d documents, of which %d stay, in %d rows", e, documents, kept, examples)
	}
	return p
}

func TestPreviewIsTheBuild(t *testing.T) {
	documents := corpusWithCopies(90, 3) // less than what a preview samples
	lines, text := filepath.Join(t.TempDir(), "lines.txt"), strings.Repeat("Some words, and ümlauts.\n\nand more\n", 20)
	if err := os.WriteFile(lines, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string]option.Settings{
		"text":     {Sources: []string{lines}, EOS: option.OwnToken},
		"json":     {Sources: []string{writeDocuments(t, documents), lines}, MaxLength: 64},
		"truncate": {Sources: []string{writeDocuments(t, documents)}, MaxLength: 64, Overflow: example.Truncate},
		"drop":     {Sources: []string{writeDocuments(t, documents)}, MaxLength: 64, Overflow: example.Drop},
		"filters": {Sources: []string{writeDocuments(t, documents)}, MaxLength: 64, Dedup: filter.Exact,
			Filter: filter.Options{Where: []string{"meta.lang=en"}, MinChars: 50}},
		"near":    {Sources: []string{writeDocuments(t, documents)}, MaxLength: 64, Dedup: filter.Near},
		"val":     {Sources: []string{writeDocuments(t, documents)}, ValSources: []string{lines}, MaxLength: 64},
		"heldout": {Sources: []string{lines}, MaxValExamples: 1000},
	} {
		t.Run(name, func(t *testing.T) { checkPreview(t, option.Options{Settings: settings}) })
	}
}

func TestPreviewOfChats(t *testing.T) {
	chats, template := writeChats(t, 30)
	p := checkPreview(t, chatOptions(chats, template))
	trained, untrained := 0, 0
	for _, d := range p.Inputs[0].Documents {
		for _, row := range d.Examples {
			if len(row.LossMask) != len(row.InputIDs) {
				t.Fatalf("a mask of %d tokens for %d", len(row.LossMask), len(row.InputIDs))
			}
			if slices.Contains(row.LossMask, true) {
				trained++
			}
		}
		if !d.LeftOut.IsZero() {
			untrained++
		}
	}
	if trained < 20 || untrained != 3 {
		t.Errorf("%d rows with loss, and %d conversations left out", trained, untrained)
	}
}

// TestPreviewOfMuch looks at sources of which only the beginning is read.
func TestPreviewOfMuch(t *testing.T) {
	dir := t.TempDir()
	const files, lines = 12, 4000
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d of about fifty characters, as they all are %d.\n", i, i*i)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.txt", i)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fsys := shardtest.New()
	o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
		Settings: option.Settings{
			Sources: []string{dir}}}
	p, err := Preview(context.Background(), o, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Inputs) != preview.MaxInputs || p.MoreInputs != files-preview.MaxInputs || len(p.Inputs[0].Documents) != 2 {
		t.Errorf("%d inputs and %d more, the first of %d documents", len(p.Inputs), p.MoreInputs,
			len(p.Inputs[0].Documents))
	}
	if e := p.Estimate; e.Exact || !e.Known || e.Examples < files*lines*9/10 || e.Examples > files*lines*11/10 ||
		e.Seconds <= 0 {
		t.Errorf("%+v for %d rows", e, files*lines)
	}
	o.MaxExamples = 100
	if p, err = Preview(context.Background(), o, 1); err != nil || p.Estimate.Examples != 100 ||
		p.Estimate.LimitedBy != "max-examples" {
		t.Errorf("%+v, %v for 100 rows", p.Estimate, err)
	}
	o.Format, o.MaxExamples, o.Pack = "document", 0, pack.BFD
	if p, err = Preview(context.Background(), o, 1); err != nil || p.Estimate.Examples != files {
		t.Errorf("%+v, %v for a row of each file", p.Estimate, err)
	}
	o.Format, o.Pack, o.Dedup = "text", pack.None, filter.Near // whose keys would fill a file
	if p, err = Preview(context.Background(), o, preview.MaxDocuments); err != nil || p.Estimate.Kept == 0 {
		t.Errorf("%+v, %v where copies are left out", p.Estimate, err)
	}
	if files := fsys.Files(); len(files) > 0 {
		t.Errorf("previews wrote %d files", len(files))
	}
}

func TestPreviewErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	records := "{\"text\": \"good\"}\n{\"text\": bad\n{\"text\": \"more\"}\n"
	if err := os.WriteFile(path, []byte(records), 0o600); err != nil {
		t.Fatal(err)
	}
	o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings: option.Settings{Sources: []string{path}}}
	p, err := Preview(context.Background(), o, 3)
	if kind := fault.KindOf(err); kind != fault.Corrupt || strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("a bad record ends it with %v", err)
	}
	if len(p.Inputs[0].Documents) != 2 || p.Inputs[0].Documents[1].LeftOut.IsZero() {
		t.Errorf("%+v was found before", p.Inputs)
	}
	o.OnBadRecord = option.SkipBadRecord
	if p, err = Preview(context.Background(), o, 3); err != nil || p.Estimate.Documents != 3 || p.Estimate.Kept != 2 {
		t.Errorf("%+v, %v where bad records are skipped", p, err)
	}
	for _, n := range []int{-1, 0, preview.MaxDocuments + 1} {
		if _, err := Preview(context.Background(), o, n); fault.OptionOf(err) != "preview" {
			t.Errorf("%d documents: %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Preview(ctx, o, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestPreviewIsUnderTheCap: a record for which the cap has no room ends a preview as it ends the build.
func TestPreviewIsUnderTheCap(t *testing.T) {
	o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New(),
		Memory: 64 << 20, Workers: 1}, Settings: option.Settings{
		Sources: []string{writeDocuments(t, []testDocument{{text: "short"}, {text: strings.Repeat("some words ", 1<<18)}})},
		Filter:  filter.Options{Where: []string{"text!=x"}}}}
	p, err := Preview(context.Background(), o, 2)
	_, want := Run(context.Background(), o)
	if !errors.Is(want, read.ErrMemory) || err == nil || err.Error() != want.Error() {
		t.Errorf("the preview ends with %v, the build with %v", err, want)
	}
	if p == nil || len(p.Inputs) != 1 || len(p.Inputs[0].Documents) != 1 {
		t.Errorf("what was found before it: %+v", p)
	}
	o.Memory = 256 << 20
	if p := checkPreview(t, o); len(p.Inputs[0].Documents) != 2 {
		t.Errorf("%d documents under a larger cap", len(p.Inputs[0].Documents))
	}
}
