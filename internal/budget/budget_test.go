package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLeasesNeverExceedCap(t *testing.T) {
	const capBytes = 1000
	l := New(capBytes)
	if err := l.Reserve(Share{Name: "fixed", Bytes: 100}); err != nil {
		t.Fatal(err)
	}
	var live atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			for range 2000 {
				n := int64(rnd.IntN(900) + 1)
				lease, err := l.Acquire(context.Background(), n)
				if err != nil {
					t.Error(err)
					return
				}
				if now := live.Add(n); now > capBytes-100 {
					t.Errorf("%d bytes live under a cap that leaves %d", now, capBytes-100)
				}
				live.Add(-n)
				lease.Release()
				lease.Release() // the second must not count
			}
		}()
	}
	wg.Wait()
	if used := l.Used(); used != 100 {
		t.Errorf("%d bytes used after all leases were released, want the reserved 100", used)
	}
	if l.Peak() > capBytes {
		t.Errorf("peak %d above the cap", l.Peak())
	}
}

func TestTooLargeFailsAtOnce(t *testing.T) {
	l := New(10)
	if err := l.Reserve(Share{Name: "vocabulary", Bytes: 4}); err != nil {
		t.Fatal(err)
	}
	var tooLarge *TooLargeError
	if _, err := l.Acquire(context.Background(), 7); !errors.As(err, &tooLarge) || tooLarge.Limit != 6 {
		t.Errorf("Acquire(7) of 6: %v", err)
	}
	if err := l.Reserve(Share{Name: "cache", Bytes: 7}); !errors.As(err, &tooLarge) || tooLarge.Name != "cache" {
		t.Errorf("Reserve(7) of 6: %v", err)
	}
	if _, ok := l.TryAcquire(7); ok {
		t.Error("TryAcquire(7) of 6 succeeded")
	}
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(10)
		first, _ := l.Acquire(context.Background(), 8)
		var order []int64
		var mu sync.Mutex
		ask := func(n int64) {
			lease, err := l.Acquire(context.Background(), n)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, n)
			mu.Unlock()
			lease.Release()
		}
		go ask(9) // would be starved if the small one after it could pass
		synctest.Wait()
		go ask(2) // does not fit in addition
		synctest.Wait()
		if _, ok := l.TryAcquire(1); ok {
			t.Error("TryAcquire passed those who wait")
		}
		first.Release()
		synctest.Wait()
		if len(order) != 2 || order[0] != 9 {
			t.Errorf("served in order %v, want [9 2]", order)
		}
	})
}

func TestCancelledWaiterLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(10)
		held, _ := l.Acquire(context.Background(), 10)
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx, 5)
			failed <- err
		}()
		synctest.Wait()
		got := make(chan *Lease, 1)
		go func() {
			lease, _ := l.Acquire(context.Background(), 3)
			got <- lease
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled Acquire: %v", err)
		}
		held.Release()
		(<-got).Release()
		if l.Used() != 0 {
			t.Errorf("%d bytes left in use", l.Used())
		}
	})
}
