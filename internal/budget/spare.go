package budget

// Spare uses bytes of a ledger that nobody has leased, until somebody needs them: then it ends.
type Spare struct {
	ledger *Ledger
	leave  int64
	end    func()
}

// Spare returns the ledger's only Spare, which keeps leave bytes free. Once a part or a lease needs
// what was taken, end is called, once, and must return it all before it returns.
func (l *Ledger) Spare(leave int64, end func()) *Spare {
	s := &Spare{ledger: l, leave: leave, end: end}
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
	if l.spare != s || bytes > l.free()-s.leave {
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
	l.spared -= bytes
	l.grantWaiters()
}

// endSpare ends the spare memory if n bytes are not free with it. The caller holds mu, which is free
// while what was taken is returned.
func (l *Ledger) endSpare(n int64) {
	s := l.spare
	if s == nil || n <= l.free() {
		return
	}
	l.spare = nil
	l.mu.Unlock()
	s.end()
	l.mu.Lock()
}
