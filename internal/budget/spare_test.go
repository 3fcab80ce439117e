package budget

import (
	"context"
	"testing"
	"testing/synctest"
)

// holder takes spare memory and returns it when it is told to.
type holder struct {
	spare *Spare
	held  int64
	ended int
}

func hold(l *Ledger, leave int64) *holder {
	h := &holder{}
	h.spare = l.Spare(leave, func() {
		h.ended++
		h.spare.Return(h.held)
		h.held = 0
	})
	return h
}

func (h *holder) take(n int64) bool {
	ok := h.spare.Take(n)
	if ok {
		h.held += n
	}
	return ok
}

func TestSpareLeavesRoom(t *testing.T) {
	l := New(100)
	h := hold(l, 30)
	if h.take(71) || !h.take(50) || h.take(21) || !h.take(20) {
		t.Errorf("took %d of 100 bytes of which 30 are left", h.held)
	}
	lease, ok := l.TryAcquire(30)
	if !ok || h.ended != 0 || l.Used() != 30 || l.Peak() != 30 {
		t.Fatalf("leased what was left: %t; ended %d times, %d bytes used, %d at most", ok, h.ended, l.Used(), l.Peak())
	}
	lease.Release()
	h.spare.Return(20)
	if h.held -= 20; !h.take(20) {
		t.Error("what was returned cannot be taken again")
	}
}

// TestLeasesEndSpare: each way to lease bytes takes spare ones back, once.
func TestPartsEndSpare(t *testing.T) {
	l := New(100)
	h := hold(l, 0)
	h.take(90)
	if err := l.Reserve(Share{Name: "part", Bytes: 10}); err != nil || h.ended != 0 {
		t.Errorf("10 of 100 bytes with 90 spared: %v, ended %d times", err, h.ended)
	}
	if err := l.Reserve(Share{Name: "large", Bytes: 60}); err != nil || h.ended != 1 || h.take(1) {
		t.Errorf("60 more: %v, ended %d times, want once for good", err, h.ended)
	}
}

func TestLeasesEndSpare(t *testing.T) {
	for name, lease := range map[string]func(l *Ledger, n int64) bool{
		"TryAcquire": func(l *Ledger, n int64) bool {
			_, ok := l.TryAcquire(n)
			return ok
		},
		"Acquire": func(l *Ledger, n int64) bool {
			_, err := l.Acquire(context.Background(), n)
			return err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(100)
			h := hold(l, 10)
			if !h.take(90) || !lease(l, 10) || h.ended != 0 {
				t.Fatalf("%d bytes taken, ended %d times", h.held, h.ended)
			}
			if !lease(l, 20) || !lease(l, 70) || h.ended != 1 || h.held != 0 || l.Used() != 100 {
				t.Errorf("ended %d times, %d bytes held, %d used", h.ended, h.held, l.Used())
			}
			if h.take(0) {
				t.Error("memory is spare again")
			}
		})
	}
}

// TestWaitersGetSpare: what is returned goes to those who wait.
func TestWaitersGetSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(100)
		hurry := make(chan struct{})
		var s *Spare
		s = l.Spare(0, func() {
			<-hurry
			s.Return(60)
		})
		if !s.Take(60) {
			t.Fatal("nothing to take")
		}
		got := make(chan *Lease, 2)
		for range 2 {
			go func() {
				lease, err := l.Acquire(context.Background(), 50)
				if err != nil {
					t.Error(err)
				}
				got <- lease
			}()
		}
		synctest.Wait() // one of them ends the spare memory, the other waits
		if len(got) != 0 {
			t.Fatal("a lease of bytes that are in use")
		}
		close(hurry)
		synctest.Wait()
		if len(got) != 2 || l.Used() != 100 {
			t.Errorf("%d leases, %d bytes used", len(got), l.Used())
		}
	})
}
