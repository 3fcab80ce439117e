package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// partitionSources are files of every kind that a plan treats in its own way: cut between records,
// kept whole, empty.
func partitionSources(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	lines := strings.Split(strings.TrimSpace(string(must(os.ReadFile(writeCorpus(t, 700, 3))))), "\n")
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		put(t, path, data)
		return path
	}
	var jsonl, csv, zipped bytes.Buffer
	csv.WriteString("id,text\n")
	for i, line := range lines[:200] {
		data, _ := json.Marshal(map[string]any{"n": i, "text": strings.ToValidUTF8(line, "?") + fmt.Sprint(" j", i)})
		jsonl.Write(append(data, '\n'))
		if i%9 == 0 {
			jsonl.WriteString("\n   \n")
		}
		fmt.Fprintf(&csv, "%d,\"%s\nand a second line %d\"\n", i,
			strings.ToValidUTF8(strings.ReplaceAll(line, `"`, ""), "?"), i)
	}
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(strings.Join(lines[300:500], "\n")))
	w.Close()
	var wiki strings.Builder
	for i := range 60 {
		fmt.Fprintf(&wiki, " \n = Title %d = \n \n %s \n \n = = Part = = \n \n text %d \n", i,
			strings.Repeat("word ", i%40), i)
	}
	return []string{
		write("a.txt", []byte("\n\n"+strings.Join(lines, "\n")+"\n\n  \n")), write("b.jsonl", jsonl.Bytes()),
		write("c.txt.gz", zipped.Bytes()), write("d.csv", csv.Bytes()), write("e.txt", []byte(" \n")),
		write("f.tokens", []byte(wiki.String())), "synth://recipes?bytes=20000&seed=2",
		write("g.txt", []byte(strings.Join(lines[100:300], "\r\n"))),
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// planned writes a plan and reads it back, as other machines do.
func planned(t *testing.T, o option.Options, n int) *plan.Plan {
	t.Helper()
	p, err := MakePlan(context.Background(), o, n)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := p.Write(t.Context(), filepath.Join(dir, shardfile.PlanName)); err != nil {
		t.Fatal(err)
	}
	if p, err = plan.ReadFolder(shardfile.OS(), dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func buildPart(p *plan.Plan, number int, out string) (*report.Summary, error) {
	part, err := p.Partition(number)
	if err != nil {
		return nil, err
	}
	o := part.Options()
	o.Out, o.LoadedTokenizer, o.Memory, o.Workers = out, small(), 64<<20, 2
	return RunPartition(context.Background(), o, part)
}

func buildParts(t *testing.T, p *plan.Plan, out string, but ...int) {
	t.Helper()
	order := rand.New(rand.NewPCG(uint64(p.Partitions), 9)).Perm(p.Partitions)
	for _, i := range order {
		if slices.Contains(but, i) {
			continue
		}
		if _, err := buildPart(p, i, out); err != nil {
			t.Fatalf("part %d of %d: %v", i, p.Partitions, err)
		}
	}
}

// sameDataset compares rows, totals and counters of two datasets.
func sameDataset(t *testing.T, got, want string, counters bool) {
	t.Helper()
	a, b := rowsOf(t, shardfile.OS(), got), rowsOf(t, shardfile.OS(), want)
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a) || i >= len(b):
			t.Fatalf("%d rows for %d", len(a), len(b))
		case a[i] != b[i]:
			t.Fatalf("row %d of %d: %.80s, want %.80s", i, len(b), a[i], b[i])
		}
	}
	m, n := must(shard.ReadManifest(shardfile.OS(), got)), must(shard.ReadManifest(shardfile.OS(), want))
	for i := range n.Splits {
		x, y := m.Splits[i], n.Splits[i]
		x.Shards, y.Shards = nil, nil
		if !counters { // a part's text counts as a whole where a budget ends in it
			x.Sources, y.Sources = withoutText(x.Sources), withoutText(y.Sources)
		}
		if fmt.Sprint(x) != fmt.Sprint(y) {
			t.Errorf("split %+v, want %+v", x, y)
		}
	}
	if counters && !maps.Equal(m.Counters, n.Counters) {
		t.Errorf("counters %v, want %v", m.Counters, n.Counters)
	}
	if counters && fmt.Sprint(m.Sources) != fmt.Sprint(n.Sources) {
		t.Errorf("sources %v, want %v", m.Sources, n.Sources)
	}
	if counters && fmt.Sprint(m.Files) != fmt.Sprint(n.Files) {
		t.Errorf("files %v, want %v", m.Files, n.Files)
	}
	if string(m.Settings) != string(n.Settings) {
		t.Errorf("settings %s, want %s", m.Settings, n.Settings)
	}
	damage, err := shard.Verify(context.Background(), shardfile.OS(), got, nil)
	if err != nil || len(damage) > 0 {
		t.Errorf("verify: %v %v", damage, err)
	}
}

// TestPartitionsEqualWhole builds the same sources whole and in partitions.
func TestPartitionsEqualWhole(t *testing.T) {
	sources := partitionSources(t)
	pair := filepath.Join(t.TempDir(), "pair.jinja")
	put(t, pair, []byte(`{% block prompt %}{{ n }}{% endblock %}{% block target %}{{ text }}{% endblock %}`))
	chats, chatTemplate := writeChats(t, 300)
	ofChats := option.Options{Settings: option.Settings{Sources: []string{chats}, Format: source.Chat,
		ChatTemplate: chatTemplate}}
	chatsAndVal, chatBytes := ofChats, ofChats
	chatsAndVal.MaxValExamples, chatsAndVal.Dedup = 30, filter.Exact
	chatBytes.MaxBytes = 50_001
	for i, c := range []struct {
		name     string
		o        option.Options
		ns       []int
		counters bool // no budget ends the build
	}{
		{"plain", option.Options{}, []int{1, 3, 8, 40}, true},
		{"val", option.Options{Settings: option.Settings{MaxValExamples: 37}}, []int{1, 4, 9}, true},
		{"much val", option.Options{Settings: option.Settings{MaxValExamples: 900}}, []int{5}, true},
		{"max-examples", option.Options{Settings: option.Settings{MaxExamples: 777}}, []int{1, 6}, false},
		{"max-examples and val", option.Options{Settings: option.Settings{MaxExamples: 300, MaxValExamples: 60}},
			[]int{7}, false},
		{"more than there is", option.Options{Settings: option.Settings{MaxExamples: 1e9, MaxTokens: 1e12}},
			[]int{2}, true},
		{"max-tokens", option.Options{Settings: option.Settings{MaxTokens: 20011}}, []int{1, 5}, false},
		{"max-tokens in val", option.Options{Settings: option.Settings{MaxTokens: 9001, MaxValExamples: 200}}, []int{4},
			false},
		{"max-bytes", option.Options{Settings: option.Settings{MaxBytes: 70001}}, []int{1, 3}, true},
		{"max-bytes and val", option.Options{Settings: option.Settings{MaxBytes: 200003, MaxValExamples: 100}},
			[]int{4},
			true},
		{"truncate", option.Options{Settings: option.Settings{Overflow: example.Truncate, EOS: option.OwnToken}},
			[]int{3}, true},
		{"drop", option.Options{Settings: option.Settings{Overflow: example.Drop, MaxValExamples: 11}}, []int{3}, true},
		{"val sources", option.Options{Settings: option.Settings{ValSources: sources[1:3]}}, []int{1, 4}, true},
		{"val sources, cut", option.Options{Settings: option.Settings{ValSources: sources[1:3], MaxExamples: 200,
			MaxValExamples: 100}}, []int{3}, false},
		{"val sources, tokens", option.Options{Settings: option.Settings{ValSources: sources[7:], MaxTokens: 60000}},
			[]int{6}, false},
		{"jsonl pairs", option.Options{Settings: option.Settings{Sources: sources[1:2], Template: pair,
			CausalPairs: true,
			MaxTokens:   5000}}, []int{3},
			false},
		{"exact copies", option.Options{Settings: option.Settings{Dedup: filter.Exact}}, []int{1, 7}, true},
		{"near copies", option.Options{Settings: option.Settings{Dedup: filter.Near, MaxValExamples: 30}},
			[]int{4}, true},
		{"copies, val and a budget", option.Options{Settings: option.Settings{Dedup: filter.Exact, MaxValExamples: 50,
			MaxExamples: 333}}, []int{5},
			false},
		{"copies in val sources", option.Options{Settings: option.Settings{Dedup: filter.Exact,
			ValSources: sources[1:3]}}, []int{3}, true},
		{"filters", option.Options{Settings: option.Settings{Filter: filter.Options{MinChars: 40,
			Match:  []string{"a[a-m]"},
			Sample: 0.7}, MaxValExamples: 20}}, []int{3}, true},
		{"conversations", ofChats, []int{3}, true},
		{"conversations, val and copies", chatsAndVal, []int{1, 3}, true},
		{"conversations, max-bytes", chatBytes, []int{3}, true},
		{"two columns", option.Options{Settings: option.Settings{Sources: sources[1:2], Template: pair,
			MaxTokens: 5003}}, []int{4}, false},
	} {
		if testing.Short() && i%9 > 0 {
			continue
		}
		o := c.o
		if len(o.Sources) == 0 {
			o.Sources = sources
		}
		o.LoadedTokenizer, o.MaxLength, o.ShardBytes, o.Memory, o.Workers = small(), 48, 16<<10, 64<<20, 2
		t.Run(c.name, func(t *testing.T) {
			whole := o
			whole.Out = filepath.Join(t.TempDir(), "whole")
			mustBuild(t, whole)
			for _, n := range fewer(c.ns) {
				out := filepath.Join(t.TempDir(), "parts")
				p := planned(t, o, n)
				buildParts(t, p, out)
				if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
					t.Fatal(err)
				}
				sameDataset(t, out, whole.Out, c.counters)
				again, err := merge.Run(context.Background(), merge.Options{Dir: out})
				if err != nil || !again.Already {
					t.Errorf("merged again: %+v %v", again, err)
				}
				if s, err := buildPart(p, 0, out); err != nil || !s.AlreadyBuilt {
					t.Errorf("part 0 after the merge: %+v %v", s, err)
				}
			}
		})
	}
}

// fewer returns the numbers of partitions that are tried. The quick tests try one, and not the largest.
func fewer(ns []int) []int {
	return effort.Of(ns[len(ns)/2:len(ns)/2+1], ns, ns)
}

// TestPartitionsAreBalanced compares the sizes of the partitions of one large file.
func TestPartitionsAreBalanced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.txt")
	put(t, path, []byte(strings.Repeat("some words of a line that is not long\n", 40_000)))
	o := option.Options{Settings: option.Settings{Sources: []string{path}},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	p := planned(t, o, 10)
	var total int64
	for i := range p.Parts {
		total += p.Parts[i].TextBytes
	}
	for i := range p.Parts {
		if n := p.Parts[i].TextBytes; n < total/11 || n > total/9 {
			t.Errorf("partition %d has %d of %d bytes", i, n, total)
		}
	}
}

// TestMissingShardIsBuiltAgain follows the advice of the merge.
func TestMissingShardIsBuiltAgain(t *testing.T) {
	o := option.Options{Settings: option.Settings{Sources: []string{writeCorpus(t, 300, 4)}, MaxLength: 64,
		ShardBytes: 8 << 10},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	p, dir := planned(t, o, 3), filepath.Join(t.TempDir(), "out")
	buildParts(t, p, dir, 1)
	if _, err := buildPart(p, 1, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "train-p00001-00000.arrow")); err != nil {
		t.Fatal(err)
	}
	if _, err := merge.Run(context.Background(), merge.Options{Dir: dir, Quick: true}); !errors.Is(err,
		shard.ErrCorrupt) {
		t.Errorf("merge: %v", err)
	}
	if s, err := buildPart(p, 1, dir); err != nil || s.AlreadyBuilt {
		t.Fatalf("built again: %+v %v", s, err)
	}
	if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, dir, whole.Out, true)
}

// TestPlanCopyIsWrittenAgain damages and removes the folder's copy of the plan, and follows the advice
// of the merge.
func TestPlanCopyIsWrittenAgain(t *testing.T) {
	o := option.Options{Settings: option.Settings{Sources: []string{writeCorpus(t, 50, 4)}},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	p, dir := planned(t, o, 2), filepath.Join(t.TempDir(), "out")
	buildParts(t, p, dir)
	path := filepath.Join(dir, shardfile.PlanName)
	put(t, path, append(must(os.ReadFile(path)), 'x'))
	_, err := merge.Run(context.Background(), merge.Options{Dir: dir})
	if !errors.Is(err, shard.ErrCorrupt) || !strings.Contains(err.Error(), "replace it with the plan") {
		t.Errorf("a damaged copy: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = merge.Run(context.Background(), merge.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "plan.json is missing; run 'dsload build") {
		t.Errorf("no copy: %v", err)
	}
	if s, err := buildPart(p, 0, dir); err != nil || !s.AlreadyBuilt {
		t.Errorf("the part again: %+v %v", s, err)
	}
	if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
		t.Error(err)
	}
}

// TestPartInUse builds a part while another process builds it: it is refused, and the first one is undisturbed.
func TestPartInUse(t *testing.T) {
	o := option.Options{Settings: option.Settings{Sources: []string{writeCorpus(t, 300, 4)}, MaxLength: 64,
		ShardBytes: 8 << 10}, Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	p, dir := planned(t, o, 2), filepath.Join(t.TempDir(), "out")
	buildParts(t, p, dir, 1)
	part := must(p.Partition(1))
	slow := part.Options()
	slow.Out, slow.LoadedTokenizer, slow.Memory, slow.Workers = dir, small(), 64<<20, 2
	refused := false
	slow.Notice = func(text fault.Text) {
		if !strings.HasPrefix(text.String(), "reading") {
			return
		}
		slow.Notice = nil
		_, err := buildPart(p, 1, dir)
		var locked *shardfile.LockedError
		if refused = errors.As(err, &locked); !refused || locked.PID != os.Getpid() ||
			!strings.Contains(err.Error(), "this partition") {
			t.Errorf("the second process: %v", err)
		}
	}
	if s, err := RunPartition(context.Background(), slow, part); err != nil || s.AlreadyBuilt || !refused {
		t.Errorf("the first process: %+v %v", s, err)
	}
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, whole)
	if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	sameDataset(t, dir, whole.Out, true)
}

// TestMergedUnread: what a budget of the plan left of the sources is in the merged manifest as in that of a single
// build, and nothing is said of it where the merge applies a budget.
func TestMergedUnread(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*option.Options)
		told   bool
	}{
		"max-bytes":    {func(o *option.Options) { o.MaxBytes = 5000 }, true},
		"max-examples": {func(o *option.Options) { o.MaxExamples = 20 }, false},
		"no budget":    {func(*option.Options) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := option.Options{Settings: option.Settings{Sources: []string{writeCorpus(t, 100, 4), writeCorpus(t, 50, 4)},
				MaxLength: 64}, Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
			c.change(&o)
			p, dir := planned(t, o, 2), filepath.Join(t.TempDir(), "out")
			buildParts(t, p, dir)
			if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			o.Out = filepath.Join(t.TempDir(), "whole")
			mustBuild(t, o)
			merged, whole := must(shard.ReadManifest(shardfile.OS(), dir)), must(shard.ReadManifest(shardfile.OS(), o.Out))
			for _, counter := range []string{"unread_bytes", "unread_inputs"} {
				have, found := merged.Counters[counter]
				if found != c.told || found && have != whole.Counters[counter] {
					t.Errorf("%s: %d, %v; the single build has %d", counter, have, found, whole.Counters[counter])
				}
			}
		})
	}
}
