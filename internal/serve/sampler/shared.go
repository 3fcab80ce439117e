package sampler

import (
	"fmt"
	"slices"
	"sync"
)

// Shared is what orders and steps that are equal make once: the windows, packed windows and balanced steps of all ranks of
// a world, which need the same ones at about the same time. It is safe for concurrent use; the zero value is ready.
type Shared struct {
	mutex sync.Mutex
	pools map[string]*pool
}

// A pool has what equal orders made, or equal steps. It is at most one part for each of them, so that the memory which
// each has for its own is that of all.
type pool struct {
	mutex  sync.Mutex
	users  int
	shared []*part // the oldest first
}

// A part is a window of an order, a step of all ranks, or a packed window.
type part struct {
	start  int64
	items  []Item  // of a window or step
	rankOf []int32 // of a step: see dealer
	next   int64   // the position after a step, or the number after a packed window
	packWindow

	readers int           // users that are at it
	ready   chan struct{} // closed once it is made, or err says why not
	err     error
}

// A user is at one part of a pool at a time.
type user struct {
	pool  *pool
	at    *part // nil for none
	wait  func(ready <-chan struct{}) error
	leave func()
}

// alone returns the user of a pool of its own.
func alone() *user {
	made := func(<-chan struct{}) error { return nil } // nobody else makes any
	return &user{pool: &pool{users: 1}, wait: made, leave: func() {}}
}

// join returns a user of the pool of a name.
func (s *Shared) join(name string, wait func(ready <-chan struct{}) error) *user {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.pools == nil {
		s.pools = map[string]*pool{}
	}
	p := s.pools[name]
	if p == nil {
		p = &pool{}
		s.pools[name] = p
	}
	p.mutex.Lock()
	p.users++
	p.mutex.Unlock()
	u := &user{pool: p, wait: wait}
	u.leave = sync.OnceFunc(func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if p.left(u.at); p.users == 0 {
			delete(s.pools, name)
		}
	})
	return u
}

// left removes a user, which was at a part or at none.
func (p *pool) left(at *part) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if at != nil {
		at.readers--
	}
	p.users--
	p.evict(p.users)
}

// isAlone reports whether nobody else uses the pool now.
func (u *user) isAlone() bool {
	u.pool.mutex.Lock()
	defer u.pool.mutex.Unlock()
	return u.pool.users == 1
}

// evict removes parts at which no user is, the oldest first, until at most most are left. It returns an empty one with the
// memory of the last.
func (p *pool) evict(most int) (empty part) {
	for i := 0; i < len(p.shared) && len(p.shared) > most; {
		old := p.shared[i]
		if old.readers > 0 {
			i++
			continue
		}
		p.shared = slices.Delete(p.shared, i, i+1)
		empty.items, empty.rankOf, empty.packWindow = old.items[:0], old.rankOf[:0], old.packWindow
	}
	return empty
}

// move moves a user to the part that begins at start. The first one there makes it, and others that come meanwhile wait. If
// it cannot be made, each of them tries.
func (u *user) move(start int64, build func(*part) error) (at *part, err error) {
	p := u.pool
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if u.at != nil {
		u.at.readers--
		u.at = nil
	}
	for {
		i := slices.IndexFunc(p.shared, func(m *part) bool { return m.start == start })
		if i < 0 {
			u.at, err = p.add(start, build)
			return u.at, err
		}
		to := p.shared[i]
		to.readers++
		p.mutex.Unlock()
		err := u.wait(to.ready)
		p.mutex.Lock()
		if err == nil && to.err == nil {
			u.at = to
			return to, nil
		}
		if to.readers--; err != nil {
			return nil, err
		}
	}
}

// add makes a part, without the mutex, which is locked.
func (p *pool) add(start int64, build func(*part) error) (*part, error) {
	to := new(p.evict(p.users - 1))
	to.start, to.readers, to.ready = start, 1, make(chan struct{})
	p.shared = append(p.shared, to)
	p.mutex.Unlock()
	to.err = build(to)
	p.mutex.Lock()
	close(to.ready)
	if to.err != nil {
		p.shared = slices.DeleteFunc(p.shared, func(m *part) bool { return m == to })
		return nil, to.err
	}
	return to, nil
}

// Share makes steps and their order share what they make with equal ones of the same sources, until Release. For what others
// are making they call wait, which returns once the channel is closed, or with an error.
func (s *Steps) Share(shared *Shared, sources string, wait func(ready <-chan struct{}) error) {
	if o := s.order; o.opts.Bucket > 0 {
		o.user = shared.join(fmt.Sprintf("%s %+v", sources, o.opts), wait)
	}
	if s.balanced() {
		equal := s.opts
		equal.Rank, equal.Start, equal.Epochs = 0, 0, 0
		s.user = shared.join(fmt.Sprintf("%s %+v %+v", sources, s.order.opts, equal), wait)
	}
}

// Share is Steps.Share for packed windows, which are equal whatever the steps are.
func (s *PackedSteps) Share(shared *Shared, sources string, wait func(ready <-chan struct{}) error) {
	p := s.packed
	p.user = shared.join(fmt.Sprintf("%s %+v %+v", sources, p.order.opts, p.opts), wait)
}

// Release ends sharing. Neither the steps nor their order may be used after it.
func (s *PackedSteps) Release() { s.packed.user.leave() }

// Release ends sharing. Neither the steps nor their order may be used after it.
func (s *Steps) Release() {
	s.user.leave()
	s.order.user.leave()
}
