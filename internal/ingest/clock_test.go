package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// jumpingClock has no monotonic reading. Each time it is read it may have jumped back or forward by
// up to two years, or stand still.
type jumpingClock struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	time time.Time
}

func newJumpingClock(seed uint64) *jumpingClock {
	return &jumpingClock{rnd: rand.New(rand.NewPCG(seed, 12)), time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (c *jumpingClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rnd.IntN(3) > 0 {
		c.time = c.time.Add(time.Duration(c.rnd.Int64N(int64(4*365*24*time.Hour))) - 2*365*24*time.Hour)
	}
	return c.time
}

// TestClockJumpsChangeNothing builds, is interrupted and resumes under clocks that jump, from
// sources whose times lie far off.
func TestClockJumpsChangeNothing(t *testing.T) {
	corpus := writeCorpus(t, 4000, 21)
	for _, mtime := range []time.Time{time.Unix(0, 0), time.Date(2100, 2, 29, 1, 2, 3, 999_999_999, time.UTC)} {
		if err := os.Chtimes(corpus, time.Now(), mtime); err != nil {
			t.Fatal(err)
		}
		base := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, CheckpointEvery: 100},
			Settings: option.Settings{Sources: []string{corpus}, MaxValExamples: 20, ShardBytes: 50 << 10,
				MaxLength: 64}}
		whole := base
		wholeFS := shardtest.New()
		whole.FS = wholeFS
		mustBuild(t, whole)

		fsys, interrupts := shardtest.New(), 0
		for run := uint64(1); ; run++ {
			ctx, cancel := context.WithCancel(context.Background())
			o := base
			o.Now = newJumpingClock(run).now
			o.FS = &cancelling{FS: fsys, after: int64(3 + run%5), cancel: cancel}
			s, err := Run(ctx, o)
			cancel()
			if err == nil {
				if s.Seconds < 0 || s.MBPerSecond < 0 {
					t.Errorf("%v seconds, %v MB/s", s.Seconds, s.MBPerSecond)
				}
				break
			}
			if !errors.Is(err, ErrInterrupted) || interrupts > 1000 {
				t.Fatalf("after %d interrupts: %v", interrupts, err)
			}
			interrupts++
		}
		if interrupts == 0 {
			t.Error("nothing was interrupted")
		}
		wantSame(t, "under a jumping clock", files(wholeFS), files(fsys))
	}
}

// A clock that was set back by a year, once, must not keep a build from taking checkpoints for a year.
func TestClockSetBackKeepsCheckpoints(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var calls int
	fsys := &countingCheckpoints{FS: shardtest.New()}
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys, Workers: 1, CheckpointEvery: 100,
			CheckpointInterval: time.Second},
		Settings: option.Settings{Sources: []string{writeCorpus(t, 4000, 22)}, MaxLength: 64}}
	o.Now = func() time.Time {
		if calls++; calls > 3 {
			return start.AddDate(-1, 0, 0).Add(time.Duration(calls) * 2 * time.Second)
		}
		return start
	}
	s := mustBuild(t, o)
	examples := s.Splits[0].Examples
	if most := int(examples / 100); fsys.checkpoints < most/8 {
		t.Errorf("%d checkpoints for %d examples", fsys.checkpoints, examples)
	}
}

type countingCheckpoints struct {
	shardfile.FS
	checkpoints int
}

func (c *countingCheckpoints) Rename(from, to string) error {
	if strings.HasSuffix(to, "build.checkpoint") {
		c.checkpoints++
	}
	return c.FS.Rename(from, to)
}
