package budget

import "sync"

// Spare uses bytes of a ledger that nobody has leased, until somebody needs them.
type Spare struct {
	ledger *Ledger
	leave  int64
	beside int64
	give   func(bytes int64)
	giving bool      // give runs; guarded by the ledger's mu
	given  sync.Cond // giving has ended
}

// Spare returns the ledger's only Spare, which keeps leave bytes free, and beside bytes in use as long as any are taken.
// Once a part or a lease needs what was taken, give is called, and must return at least so many bytes before it
// returns, or all.
func (l *Ledger) Spare(leave, beside int64, give func(bytes int64)) *Spare {
	s := &Spare{ledger: l, leave: leave, beside: beside, give: give}
	s.given.L = &l.mu
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = s
	return s
}

// Take reports whether this many more bytes may be used. It does not wait.
func (s *Spare) Take(bytes int64) bool {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spared == 0 {
		bytes += s.beside
	}
	if s.giving || l.waiters.Len() > 0 || bytes > l.free()-s.leave {
		return false
	}
	l.spared += bytes
	return true
}

// Return gives bytes back.
func (s *Spare) Return(bytes int64) {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spared -= bytes; l.spared == s.beside {
		l.spared = 0
	}
	l.grantWaiters()
}

// unspare has spare memory returned if n bytes are not free with it. The caller holds mu, which is free
// meanwhile. Others that ask then wait here, and only for that: few may wait for leases that end.
func (l *Ledger) unspare(n int64) {
	s := l.spare
	if s == nil {
		return
	}
	for s.giving {
		s.given.Wait()
	}
	for short := n - l.free(); short > 0 && l.spared > 0; short = n + l.waited() - l.free() {
		s.giving = true
		l.mu.Unlock()
		s.give(short)
		l.mu.Lock()
		s.giving = false
		s.given.Broadcast()
	}
}

// waited returns the number of bytes that requests wait for; the caller holds mu.
func (l *Ledger) waited() (n int64) {
	for el := l.waiters.Front(); el != nil; el = el.Next() {
		n += el.Value.(*waiter).n
	}
	return n
}
