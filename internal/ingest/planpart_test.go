package ingest

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/shardfile"
)

// manyInputs returns a plan of many small files in a file, for a build with a split val and copies.
func manyInputs(t *testing.T, files, partitions int) (path string, whole *plan.Plan) {
	t.Helper()
	dir := t.TempDir()
	for i := range files {
		lineFile(t, dir, strings.Repeat("long-name-", 10)+string(rune('a'+i%26))+strings.Repeat("x", i/26)+".jsonl",
			strings.Repeat("word ", 1+i%7))
	}
	o := option.Options{Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20},
		Settings: option.Settings{Sources: []string{dir}, MaxValExamples: 5, Dedup: filter.Exact}}
	path = filepath.Join(t.TempDir(), shardfile.PlanName)
	p := planned(t, o, partitions)
	if err := p.Write(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path, must(plan.ReadFolder(shardfile.OS(), filepath.Dir(path)))
}

// TestPlanPart: what is read of a plan for a partition gives what the whole plan gives, and holds no other
// partition's inputs.
func TestPlanPart(t *testing.T) {
	path, whole := manyInputs(t, 100, 7)
	kept := 0
	for number := range 7 {
		p := must(plan.Open(path, number))
		if p.Seal() != whole.Seal() || p.Partitions != 7 || string(p.Settings) != string(whole.Settings) ||
			!reflect.DeepEqual(p.Given, whole.Given) || p.Share != whole.Share ||
			!reflect.DeepEqual(p.Held, whole.Held) {
			t.Errorf("partition %d: another plan", number)
		}
		if !reflect.DeepEqual(p.Ranges(number), whole.Ranges(number)) ||
			!reflect.DeepEqual(p.Entry(number), whole.Entry(number)) {
			t.Errorf("partition %d reads %+v, want %+v", number, p.Ranges(number)[0], whole.Ranges(number)[0])
		}
		for _, i := range []int{number, number + 1} {
			phase, from := p.Start(i)
			if wantPhase, want := whole.Start(i); phase != wantPhase || from != want {
				t.Errorf("partition %d begins at %+v, want %+v", i, from, want)
			}
		}
		n := len(p.Phases[0].Inputs)
		if kept += n; n > 40 || len(p.Sources) > 0 || p.Bytes() >= whole.Bytes()/2 {
			t.Errorf("partition %d holds %d inputs and %d sources, %d bytes of %d", number, n, len(p.Sources),
				p.Bytes(),
				whole.Bytes())
		}
		part := must(p.Partition(number))
		o := part.Options()
		o.Out, o.LoadedTokenizer, o.Memory = filepath.Join(t.TempDir(), "parts"), small(), 256<<20
		m := must(PartitionMemory(o, part))
		if !slices.ContainsFunc(m.Shares, func(b budget.Share) bool {
			return b.Name == "plan" &&
				b.Bytes == p.Bytes()
		}) {
			t.Errorf("partition %d: the memory plan lacks the plan: %v", number, m.Shares)
		}
	}
	if kept < 100 || kept > 107 {
		t.Errorf("all partitions together hold %d inputs of 100", kept)
	}
	if p := must(plan.Open(path, -1)); len(p.Parts) != 0 || p.Partitions != 7 {
		t.Errorf("no partition: %+v", p.Parts)
	}
}

// TestPartsOfPlanFiles builds every partition from what it reads of the file, and merges them.
func TestPartsOfPlanFiles(t *testing.T) {
	path, whole := manyInputs(t, 60, 4)
	dir := filepath.Join(t.TempDir(), "data")
	for number := range 4 {
		if _, err := buildPart(must(plan.Open(path, number)), number, dir); err != nil {
			t.Fatal(err)
		}
	}
	copied, data := must(os.ReadFile(filepath.Join(dir, shardfile.PlanName))), must(os.ReadFile(path))
	if string(copied) != string(data) {
		t.Error("the copy of the plan differs")
	}
	if _, err := merge.Run(t.Context(), merge.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	single := option.Options{Settings: whole.Given}
	single.Out, single.LoadedTokenizer, single.Memory = filepath.Join(t.TempDir(), "single"), small(), 256<<20
	mustBuild(t, single)
	sameDataset(t, dir, single.Out, true)

	// A plan that is replaced meanwhile is not copied into another plan's folder.
	p := must(plan.Open(path, 0))
	other, _ := manyInputs(t, 8, 2)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := buildPart(p, 0, filepath.Join(t.TempDir(), "late")); fault.KindOf(err) != fault.Usage {
		t.Errorf("a replaced plan: %v", err)
	}
}

// TestDamagedPlanPart changes every stretch of a plan: each is found, whatever the partition.
func TestDamagedPlanPart(t *testing.T) {
	path, _ := manyInputs(t, 20, 3)
	data := must(os.ReadFile(path))
	bad := filepath.Join(t.TempDir(), "plan.json")
	for at := 0; at < len(data); at += 1 + len(data)/200 {
		for _, damaged := range [][]byte{data[:at], append(append(append([]byte{}, data[:at]...), data[at]^1),
			data[at+1:]...)} {
			put(t, bad, damaged)
			if _, err := plan.Open(bad, 1); err == nil {
				t.Fatalf("byte %d of %d: read", at, len(data))
			}
		}
	}
	put(t, bad, []byte("{\"text\": \"no plan\"}\n"))
	var option *fault.Error
	if _, err := plan.Open(bad, 1); !errors.As(err, &option) || !strings.Contains(err.Error(), "is not a plan") {
		t.Errorf("another file: %v", err)
	}
	if _, err := plan.Open(bad+".gone", 1); !errors.As(err, &option) || !strings.Contains(err.Error(),
		"no such file") {
		t.Errorf("no file: %v", err)
	}
}
