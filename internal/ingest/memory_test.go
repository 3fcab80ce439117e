package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/columnar/columnartest"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// A build whose list of shards outgrows its part of the cap stops with the reason, and resumes
// under a larger cap to the same bytes.
func TestListOfShardsIsUnderTheCap(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it builds until memory ends")
	}
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: gpt2(), Workers: 1, CheckpointEvery: 100},
		Settings: option.Settings{Sources: []string{"synth://wikitext?seed=5"}, MaxBytes: 4 << 20, ShardBytes: 4 << 10,
			MaxLength: 4096}}
	plan, err := PlanMemory(base)
	if err != nil {
		t.Fatal(err)
	}
	small, fsys := base, shardtest.New()
	small.FS, small.Memory = fsys, plan.Smallest
	if plan, err = PlanMemory(small); err != nil {
		t.Fatal(err)
	}
	// more ids than that many shards hold: a token has fewer than eight bytes of text
	small.MaxBytes = int64(plan.MaxShards) * (4 << 10) * 4
	_, err = Run(context.Background(), small)
	if !errors.Is(err, read.ErrMemory) || !strings.Contains(err.Error(), "raise `memory`") {
		t.Fatalf("%d shards at most: %v", plan.MaxShards, err)
	}
	if _, err := Run(context.Background(), small); !errors.Is(err, read.ErrMemory) {
		t.Fatalf("once more: %v", err)
	}
	large := small
	large.Memory = 256 << 20
	mustBuild(t, large)
	whole := large
	wholeFS := shardtest.New()
	whole.FS = wholeFS
	mustBuild(t, whole)
	wantSame(t, "under a larger cap", files(wholeFS), files(fsys))
}

// The parts of a plan are the cap, to the byte, and the smallest cap works while a little less does not.
func TestPlanIsTheCap(t *testing.T) {
	for _, o := range []option.Options{
		{Resources: option.Resources{Memory: 64 << 20, Workers: 2}},
		{Resources: option.Resources{Memory: 1 << 30, Workers: 9},
			Settings: option.Settings{MaxValExamples: 100_000, MaxBytes: 1 << 30}},
		{Resources: option.Resources{Memory: 256 << 20, Workers: 3},
			Settings: option.Settings{Sources: []string{"synth://recipes?seed=1"}, Template: "recipe-seq2seq",
				MaxLength: 1 << 20}},
	} {
		o.LoadedTokenizer = gpt2()
		plan, err := PlanMemory(o)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, part := range plan.Shares {
			if sum += part.Bytes; part.Bytes < 0 || part.Why == "" {
				t.Errorf("%+v", part)
			}
		}
		if sum != o.Memory || plan.Sum != o.Memory {
			t.Errorf("the parts are %d of %d bytes", sum, o.Memory)
		}
		o.Memory = plan.Smallest
		if _, err := PlanMemory(o); err != nil {
			t.Errorf("the smallest cap: %v", err)
		}
		o.Memory -= 64 << 10
		var capped *setup.CapError
		if _, err := PlanMemory(o); !errors.As(err, &capped) {
			t.Errorf("less than the smallest cap, %d: %v", o.Memory, err)
		}
	}
}

// The word caches of a small text are small, as far as one helps; of a text without a known end they are not.
func TestCachesFitTheText(t *testing.T) {
	text := func(lines int) string {
		path := filepath.Join(t.TempDir(), "a.txt")
		if err := os.WriteFile(path, bytes.Repeat([]byte("seven b\n"), lines), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		source string
		want   int
	}{{text(2), 512 << 10}, {text(300 << 7), 2 << 20}, {text(2 << 17), 8 << 20}, {"synth://wikitext?seed=1", 8 << 20}} {
		plan, err := PlanMemory(option.Options{Resources: option.Resources{LoadedTokenizer: gpt2(), Memory: 1 << 30, Workers: 2},
			Settings: option.Settings{Sources: []string{c.source}, MaxBytes: 4 << 20}})
		if err != nil || plan.CacheBytes != c.want {
			t.Errorf("%s: %v of caches, %v", c.source, plan.CacheBytes, err)
		}
	}
}

// A file whose metadata does not fit is refused for that, and the cap that is advised is enough, also where
// the metadata was only counted.
func TestMetadataIsInThePlan(t *testing.T) {
	for name, p := range map[string]columnartest.Parquet{
		"row groups": {Groups: 150_000}, "counted row groups": {Groups: 400_000},
		"chunks": {Groups: 1500, Columns: 300},
	} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, p.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		o := option.Options{Resources: option.Resources{LoadedTokenizer: gpt2(), Memory: 48 << 20, Workers: 2},
			Settings: option.Settings{Sources: []string{path}}}
		if p.Columns > 0 { // all are wanted
			o.Format, o.ChatTemplate = source.Chat, path+".jinja"
		}
		if err := os.WriteFile(path+".jinja", []byte(testChatTemplate), 0o600); err != nil {
			t.Fatal(err)
		}
		var capped *setup.CapError
		_, err := PlanMemory(o)
		if !errors.As(err, &capped) || !strings.Contains(err.Error(), "x.parquet: its footer of ") ||
			!strings.Contains(err.Error(), fmt.Sprintf("row groups: %d)", p.Groups)) ||
			strings.Contains(err.Error(), "zstd") {
			t.Fatalf("%s: %v", name, err)
		}
		o.Memory = (capped.Smallest + 1<<20 - 1) >> 20 << 20
		if _, err := PlanMemory(o); err != nil {
			t.Errorf("%s, as advised: %v", name, err)
		}
	}
}

// Small files are kept only where all else has room: the smallest cap is that without them.
func TestSmallFilesYield(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), bytes.Repeat([]byte("text\n"), 60<<10/5),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := option.Options{Resources: option.Resources{LoadedTokenizer: gpt2(), Memory: 256 << 20, Workers: 8},
		Settings: option.Settings{Sources: []string{dir}}}
	keeps := func() bool {
		plan, err := PlanMemory(o)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(plan.Shares, func(p budget.Share) bool { return p.Name == "small files" })
		if i >= 0 && plan.Shares[i].Bytes != 40*60<<10 {
			t.Errorf("%d bytes are kept", plan.Shares[i].Bytes)
		}
		o.Memory = plan.Smallest
		return i >= 0
	}
	if !keeps() {
		t.Error("no files are kept")
	}
	if keeps() {
		t.Errorf("files are kept under the smallest cap, %d", o.Memory)
	}
}
