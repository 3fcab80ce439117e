package ingest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// splitFile writes a record for each turn of the assistant in a file of conversations, which ends with it.
func splitFile(t *testing.T, chats string) (path string, turns int) {
	t.Helper()
	data, err := os.ReadFile(chats)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var record struct{ Messages []map[string]any }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		for i, m := range record.Messages {
			if m["role"] == "assistant" {
				part, err := json.Marshal(map[string]any{"messages": record.Messages[:i+1]})
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(part, '\n'))
				turns++
			}
		}
	}
	path = filepath.Join(t.TempDir(), "turns.jsonl")
	put(t, path, []byte(out.String()))
	return path, turns
}

// rowsWithMasks returns the rows of a dataset as texts, and their documents.
func rowsWithMasks(t *testing.T, fsys shardfile.FS, dir, split string) (rows []string, documents []int64) {
	t.Helper()
	for _, row := range readRows(t, fsys, dir, split) {
		rows = append(rows, fmt.Sprint(row.AppendInputIDs(nil), row.LossMask, row.Segments, row.Part))
		documents = append(documents, row.Document)
	}
	return rows, documents
}

// TestSplitTurnsMakeTheRowsOfShorterConversations: the rows are those of a record for each turn, whatever happens to
// long ones.
func TestSplitTurnsMakeTheRowsOfShorterConversations(t *testing.T) {
	chats, template := writeChats(t, 150)
	split, turns := splitFile(t, chats)
	for name, change := range map[string]func(*option.Options){
		"chunk": func(*option.Options) {}, "truncate": func(o *option.Options) { o.Overflow = example.Truncate },
		"drop":    func(o *option.Options) { o.Overflow = example.Drop },
		"long":    func(o *option.Options) { o.MaxLength = 5000 },
		"eos":     func(o *option.Options) { o.EOS = option.OwnToken },
		"wrapped": func(o *option.Options) { o.Pack = pack.Wrapped }, "bfd": func(o *option.Options) { o.Pack = pack.BFD },
		"bfd_split": func(o *option.Options) { o.Pack = pack.BFDSplit },
	} {
		t.Run(name, func(t *testing.T) {
			o := chatOptions(chats, template)
			o.SplitTurns, o.MaxValExamples = true, 0
			change(&o)
			s := mustBuild(t, o)
			p := chatOptions(split, template)
			p.TrainOn, p.MaxValExamples = "last", 0
			change(&p)
			mustBuild(t, p)
			got, documents := rowsWithMasks(t, o.FS, "data", splitTrain)
			want, _ := rowsWithMasks(t, p.FS, "data", splitTrain)
			if !slices.Equal(got, want) || len(got) == 0 || s.Turns != int64(turns) {
				t.Fatalf("%d rows, want %d; %d turns of %d", len(got), len(want), s.Turns, turns)
			}
			if damage, err := shard.Verify(t.Context(), o.FS, "data", nil); err != nil || len(damage) > 0 {
				t.Errorf("verify: %v %v", damage, err)
			}
			if o.Pack == "" && !slices.IsSorted(documents) {
				t.Error("documents do not rise")
			}
		})
	}
}

// TestSplitTurnsDependOnOutputOptionsOnly: workers, memory, checkpoints, partitions and additions change no row, and
// a conversation is in one split as a whole.
func TestSplitTurnsDependOnOutputOptionsOnly(t *testing.T) {
	chats, template := writeChats(t, 300)
	o := chatOptions(chats, template)
	o.SplitTurns, o.Workers = true, 1
	mustBuild(t, o)
	want := files(o.FS.(*shardtest.FS))
	_, train := rowsWithMasks(t, o.FS, "data", splitTrain)
	_, val := rowsWithMasks(t, o.FS, "data", splitVal)
	record := func(documents []int64) map[int64]bool {
		of := map[int64]bool{}
		for _, d := range documents {
			of[d/turnNumbers] = true
		}
		return of
	}
	for d := range record(val) {
		if record(train)[d] {
			t.Fatalf("conversation %d is in both splits", d)
		}
	}
	if len(record(val)) == 0 || len(record(val)) == len(val) {
		t.Errorf("%d rows of val, of %d conversations", len(val), len(record(val)))
	}
	again := chatOptions(chats, template)
	again.SplitTurns, again.Workers, again.Memory, again.CheckpointEvery, again.CheckpointInterval = true, 3, 96<<20, 7, 1
	mustBuild(t, again)
	wantSame(t, "other workers, memory or checkpoints", want, files(again.FS.(*shardtest.FS)))
	checkTurnOrigins(t, o.FS, "data", chats)

	other := chatOptions(chats, template) // another value is another build
	other.FS = o.FS
	if _, err := Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), "split-turns") {
		t.Errorf("without the option: %v", err)
	}
}

// checkTurnOrigins checks that the rows of a conversation lead to its line.
func checkTurnOrigins(t *testing.T, fsys shardfile.FS, dir, source string) {
	t.Helper()
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	found, err := origins.OpenSplit(fsys, dir, must(shard.ReadManifest(fsys, dir)), splitTrain)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for _, row := range readRows(t, fsys, dir, splitTrain) {
		o, ok, err := found.Find(row.Document)
		if err != nil || !ok || o.Source != source || o.Record != row.Document/turnNumbers+1 {
			t.Fatalf("document %d: %+v, %v, %v", row.Document, o, ok, err)
		}
		ids := row.AppendInputIDs(nil)
		text := small().Decode(ids[:min(4, len(ids))])
		if row.Part == 0 && !strings.Contains(lines[o.Record-1], strings.TrimPrefix(text, "user: ")) {
			t.Fatalf("document %d: %q is not in %q", row.Document, text, lines[o.Record-1])
		}
	}
}

// TestSplitTurnsInPartitions: partitions make the rows of the whole build, and an addition continues its documents.
func TestSplitTurnsInPartitions(t *testing.T) {
	var sources []string
	var template string
	dir := t.TempDir()
	for i := range 3 {
		chats, made := writeChats(t, 60+i)
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		if err := os.Rename(chats, path); err != nil {
			t.Fatal(err)
		}
		sources, template = append(sources, path), made
	}
	o := chatOptions("", template)
	o.Sources, o.SplitTurns, o.FS, o.MaxValExamples = sources, true, nil, 0
	o.Out = filepath.Join(dir, "whole")
	mustBuild(t, o)
	p := planned(t, o, 3)
	for i := range p.Partitions {
		part := must(p.Partition(i))
		b := part.Options()
		b.Out, b.LoadedTokenizer, b.Memory, b.Workers = filepath.Join(dir, "parts"), small(), 128<<20, 2
		if _, err := RunPartition(t.Context(), b, part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := merge.Run(t.Context(), merge.Options{Dir: filepath.Join(dir, "parts")}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, filepath.Join(dir, "parts"), o.Out, true)

	added := o
	added.Out, added.Sources = filepath.Join(dir, "added"), sources[:2]
	mustBuild(t, added)
	added.Append, added.Sources = true, sources[2:]
	mustBuild(t, added)
	got, documents := rowsWithMasks(t, shardfile.OS(), added.Out, splitTrain)
	want, whole := rowsWithMasks(t, shardfile.OS(), o.Out, splitTrain)
	if !slices.Equal(got, want) || !slices.Equal(documents, whole) {
		t.Errorf("%d rows, want %d; documents %v, want %v", len(got), len(want), documents, whole)
	}
}
