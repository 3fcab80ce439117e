// Package budget is the byte ledger under the memory cap.
//
// Every buffer whose size depends on input, settings or vocabulary is leased here before it exists.
// A lease is taken once, at entry to the pipeline, for the worst case; it travels with the job, and
// the last stage releases it. No stage takes a second lease while it holds one that others wait
// for, so leases cannot deadlock.
//
// Invariants:
//
//	I1  the sum of live leases never exceeds the cap;
//	I2  waiters are served in order of arrival, so small requests cannot starve a large one;
//	I3  a request that the cap can never grant fails at once with a TooLargeError; it does not
//	    wait;
//	I4  what Spare has taken counts in I1, but no request waits for it or fails because of it.
//
// A Ledger is safe for concurrent use.
package budget

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/dsload/dsload/internal/units"
)

// TooLargeError means that a lease can never be granted.
type TooLargeError struct {
	Name   string // what the bytes were for; "" for an unnamed lease
	Wanted int64  // bytes
	Limit  int64  // the maximum that can be granted
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s needs %v and the memory cap leaves %v", cmp.Or(e.Name, "a buffer"), units.Size(e.Wanted), units.Size(e.Limit))
}

// Share is one named reservation: a fixed part of the cap.
type Share struct {
	Name  string `json:"name"` // what holds the bytes
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"` // what the size depends on
}

// Ledger accounts for bytes under one cap.
type Ledger struct {
	capBytes int64

	mu       sync.Mutex
	reserved int64     // fixed parts, never released
	leased   int64     // leases in flight
	peak     int64     // largest reserved + leased
	waiters  list.List // elements are *waiter, in order of asking
	spared   int64     // bytes that spare has taken
	spare    *Spare    // nil if there is none
}

type waiter struct {
	n     int64
	ready chan struct{}
}

// New returns a ledger of capBytes bytes.
func New(capBytes int64) *Ledger {
	return &Ledger{capBytes: capBytes}
}

// Lease is a number of bytes held until Release. The zero Lease holds nothing.
type Lease struct {
	ledger *Ledger
	n      int64
}

// Bytes returns the size of the lease.
func (l *Lease) Bytes() int64 { return l.n }

// Release returns the bytes. Releasing twice, or a nil lease, does nothing.
func (l *Lease) Release() {
	if l == nil || l.ledger == nil {
		return
	}
	ledger := l.ledger
	l.ledger = nil
	ledger.mu.Lock()
	ledger.leased -= l.n
	ledger.grantWaiters()
	ledger.mu.Unlock()
}

// Reserve reserves a part of the cap for the ledger's whole life.
func (l *Ledger) Reserve(p Share) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unspare(p.Bytes)
	if left := l.free(); p.Bytes > left {
		return &TooLargeError{Name: p.Name, Wanted: p.Bytes, Limit: left}
	}
	l.reserved += p.Bytes
	l.notePeak()
	return nil
}

// TryAcquire leases n bytes if they are free now and nobody waits.
func (l *Ledger) TryAcquire(n int64) (*Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unspare(n)
	if l.waiters.Len() > 0 || n > l.free() {
		return nil, false
	}
	return l.grant(n), true
}

// Acquire leases n bytes, waiting for others to release theirs. It fails with a TooLargeError if
// waiting cannot help, and with the context's error if ctx ends first.
func (l *Ledger) Acquire(ctx context.Context, n int64) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if limit := l.capBytes - l.reserved; n > limit {
		l.mu.Unlock()
		return nil, &TooLargeError{Wanted: n, Limit: limit}
	}
	l.unspare(n)
	if l.waiters.Len() == 0 && n <= l.free() {
		lease := l.grant(n)
		l.mu.Unlock()
		return lease, nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	el := l.waiters.PushBack(w)
	l.mu.Unlock()

	select {
	case <-w.ready:
		return &Lease{ledger: l, n: n}, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.ready: // granted while ctx ended: return it
		l.leased -= n
	default:
		l.waiters.Remove(el)
	}
	l.grantWaiters()
	return nil, ctx.Err()
}

// grant books n bytes; the caller holds mu and has checked that they are free.
func (l *Ledger) grant(n int64) *Lease {
	l.leased += n
	l.notePeak()
	return &Lease{ledger: l, n: n}
}

// grantWaiters books the bytes of as many waiters as fit, first come first served; the caller holds
// mu.
func (l *Ledger) grantWaiters() {
	for el := l.waiters.Front(); el != nil; el = l.waiters.Front() {
		w := el.Value.(*waiter)
		if w.n > l.free() {
			return
		}
		l.leased += w.n
		l.notePeak()
		l.waiters.Remove(el)
		close(w.ready)
	}
}

func (l *Ledger) notePeak() {
	l.peak = max(l.peak, l.reserved+l.leased)
}

// free returns the bytes that are neither reserved, leased nor spared; the caller holds mu.
func (l *Ledger) free() int64 { return l.capBytes - l.reserved - l.leased - l.spared }

// Cap returns the size of the ledger in bytes.
func (l *Ledger) Cap() int64 { return l.capBytes }

// Used returns the number of bytes reserved and leased now, without what Spare has taken.
func (l *Ledger) Used() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserved + l.leased
}

// Peak returns the largest number of bytes reserved and leased at once.
func (l *Ledger) Peak() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peak
}

// Free returns the number of bytes that leases could take if none were held.
func (l *Ledger) Free() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.capBytes - l.reserved
}
