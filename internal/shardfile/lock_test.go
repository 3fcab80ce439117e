package shardfile

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// A lock has one holder at a time, also where others wait for its file while the holder removes it.
func TestLockHasOneHolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	var holders, taken atomic.Int32
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for taken.Load() < 400 && !t.Failed() {
				l, err := OS().Lock(name, nil)
				if err != nil {
					continue // another holds it
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				if err := l.Held(); err != nil {
					t.Error(err)
				}
				taken.Add(1)
				holders.Add(-1)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
