package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// TestAppendToMerged adds to a merged dataset, interrupted again and again, and compares it with the
// same addition to the single build.
func TestAppendToMerged(t *testing.T) {
	effort.RacedElsewhere(t)
	_, _, sources := halves(t)
	for _, c := range []struct {
		name string
		o    option.Options
	}{
		{"plain", option.Options{}},
		{"val and copies", option.Options{Settings: option.Settings{MaxValExamples: 60, Dedup: filter.Exact}}},
		{"near copies", option.Options{Settings: option.Settings{Dedup: filter.Near}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.o
			o.LoadedTokenizer, o.MaxLength, o.ShardBytes, o.Memory, o.Workers = small(), 40, 8<<10, 64<<20, 2
			o.Sources = sources[:1]
			whole := o
			whole.Out = filepath.Join(t.TempDir(), "whole")
			mustBuild(t, whole)
			dir := filepath.Join(t.TempDir(), "merged")
			buildParts(t, planned(t, o, 3), dir)
			if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			whole.Sources, whole.Append = sources[1:], true
			mustBuild(t, whole)
			for runs := 0; ; runs++ {
				added := whole
				added.Out, added.Workers, added.CheckpointEvery, added.CheckpointInterval = dir, 1, 1, 1
				ctx, cancel := context.WithCancel(context.Background())
				n := 0
				added.FS = afterCheckpoints{shardfile.OS(), func() {
					if n++; n > 2 && runs < 5 {
						cancel()
					}
				}}
				_, err := Run(ctx, added)
				cancel()
				if err == nil {
					break
				}
				if damage, verr := shard.Verify(context.Background(), shardfile.OS(), dir, nil); verr != nil ||
					len(damage) > 0 {
					t.Errorf("verify of an unfinished addition: %v %v", damage, verr)
				}
				if !errors.Is(err, ErrInterrupted) {
					t.Fatal(err)
				}
			}
			again := whole
			again.Out = dir
			if s, err := Run(context.Background(), again); err != nil || !s.AlreadyBuilt {
				t.Errorf("the same addition again: %+v %v", s, err)
			}
			sameDataset(t, dir, whole.Out, true)
			m := must(shard.ReadManifest(shardfile.OS(), dir))
			last := m.Splits[0].Shards[len(m.Splits[0].Shards)-1].Name
			if want := fmt.Sprintf("train-p%05d-", 3); m.Merged == nil || m.Merged.Partitions != 4 ||
				last[:len(want)] != want {
				t.Errorf("%+v, the last shard is %s", m.Merged, last)
			}
			if s, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil || !s.Already ||
				s.Removed > 0 {
				t.Errorf("merged again: %+v %v", s, err)
			}
		})
	}
}
