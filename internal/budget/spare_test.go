package budget

import (
	"context"
	"testing"
	"testing/synctest"
)

// holder takes spare memory and gives it back when it is told to.
type holder struct {
	spare *Spare
	held  int64
	asked int
}

func hold(l *Ledger, leave int64) *holder {
	h := &holder{}
	h.spare = l.Spare(leave, 0, func(bytes int64) {
		h.asked++
		n := min(bytes, h.held)
		h.held -= n
		h.spare.Return(n)
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
	if !ok || h.asked != 0 || l.Used() != 30 || l.Peak() != 30 {
		t.Fatalf("leased what was left: %t; asked %d times, %d bytes used, %d at most", ok, h.asked, l.Used(), l.Peak())
	}
	lease.Release()
	h.spare.Return(20)
	if h.held -= 20; !h.take(20) {
		t.Error("what was returned cannot be taken again")
	}
}

// TestBesideSpare: what is beside spare bytes is in use with the first of them, and free with the last.
func TestBesideSpare(t *testing.T) {
	l := New(100)
	h := &holder{}
	h.spare = l.Spare(10, 30, func(bytes int64) {
		h.asked++
		h.spare.Return(h.held)
		h.held = 0
	})
	if h.take(61) || !h.take(40) || h.take(21) || !h.take(20) {
		t.Fatalf("took %d of 100 bytes, want 60", h.held)
	}
	if _, ok := l.TryAcquire(60); !ok || h.asked != 1 || h.held != 0 {
		t.Errorf("leased 60 of 100 bytes: %t, asked %d times, %d bytes held", ok, h.asked, h.held)
	}
	if h.take(1) {
		t.Error("took a byte without what it needs beside it")
	}
}

// TestPartsGetSpare: a part gets what it lacks, and the rest stays.
func TestPartsGetSpare(t *testing.T) {
	l := New(100)
	h := hold(l, 0)
	h.take(90)
	if err := l.Reserve(Share{Name: "part", Bytes: 10}); err != nil || h.asked != 0 {
		t.Errorf("10 of 100 bytes with 90 spared: %v, asked %d times", err, h.asked)
	}
	if err := l.Reserve(Share{Name: "large", Bytes: 60}); err != nil || h.asked != 1 || h.held != 30 || h.take(1) {
		t.Errorf("60 more: %v, asked %d times, %d bytes held, want one time and 30", err, h.asked, h.held)
	}
}

// TestLeasesGetSpare: each way to lease bytes takes as many back as it lacks, which are spare again after it.
func TestLeasesGetSpare(t *testing.T) {
	for name, lease := range map[string]func(l *Ledger, n int64) (*Lease, bool){
		"TryAcquire": (*Ledger).TryAcquire,
		"Acquire": func(l *Ledger, n int64) (*Lease, bool) {
			lease, err := l.Acquire(context.Background(), n)
			return lease, err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(100)
			h := hold(l, 10)
			if _, ok := lease(l, 10); !h.take(80) || !ok || h.asked != 0 {
				t.Fatalf("%d bytes taken, asked %d times", h.held, h.asked)
			}
			if _, ok := lease(l, 20); !ok || h.asked != 1 || h.held != 70 {
				t.Errorf("asked %d times, %d bytes held, want 1 and 70", h.asked, h.held)
			}
			large, ok := lease(l, 70)
			if !ok || h.asked != 2 || h.held != 0 || l.Used() != 100 || h.take(1) {
				t.Errorf("asked %d times, %d bytes held, %d used", h.asked, h.held, l.Used())
			}
			large.Release()
			if !h.take(60) || h.take(1) {
				t.Errorf("after the lease %d bytes are spare, want 60", h.held)
			}
		})
	}
}

// TestWaitersGetSpare: who asks while spare memory is given back gets some, too.
func TestWaitersGetSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(100)
		hurry := make(chan struct{})
		var s *Spare
		s = l.Spare(0, 0, func(bytes int64) {
			<-hurry
			if s.Take(1) {
				t.Error("took what others wait for")
			}
			s.Return(bytes)
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
		synctest.Wait() // one of them wants spare memory back, the other waits
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
