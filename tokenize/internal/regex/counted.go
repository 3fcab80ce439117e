package regex

// Memoized loops over one set with an upper bound, such as a{2,5000}. The outcome of such a loop
// depends on where it began, so with memo alone the cost would be text times count: each attempt
// would scan the characters again and try lengths that are known to fail. Successive attempts begin
// and end close to one another, so each loop keeps where it last ended and which ends failed.

// minCounted is the smallest upper bound for which this pays.
const minCounted = 4

// countedLoop is the saved state of a loop.
type countedLoop struct {
	least, most span // the characters up to the lower and the upper bound

	failed [4]stretch // positions from which the rest of the pattern fails, last used first
}

// stretch is a range of positions, low and high included.
type stretch struct {
	used      bool
	low, high int
}

// span is a run of characters of a set; in look-behind it runs to the left.
type span struct{ start, end, count int }

// slide moves a span so that it begins at pos and covers as many characters of in.set as follow, at
// most limit. It takes as many steps as the ends move.
func (m *machine) slide(in *inst, s *span, pos, limit int) {
	before := func(x, y int) bool { return x != y && x < y != in.back }
	count, end := 0, pos
	switch {
	case pos == s.start:
		count, end = s.count, s.end
	case before(s.start, pos) && before(pos, s.end):
		at, n := s.start, s.count
		for ; before(at, pos); n-- {
			at, _ = m.step(in, at)
			m.steps++
		}
		if at == pos {
			count, end = n, s.end
		}
	case before(pos, s.start):
		count, end = m.walk(in, count, end, limit, s.start)
		if end == s.start {
			for count, end = count+s.count, s.end; count > limit; count-- {
				end = m.back(end, !in.back)
				m.steps++
			}
		}
	}
	count, end = m.walk(in, count, end, limit, -1)
	*s = span{pos, end, count}
}

// walk extends a run of count characters from end until it has limit characters, the next one is
// not in the set, or it reaches stop.
func (m *machine) walk(in *inst, count, end, limit, stop int) (int, int) {
	for count < limit && end != stop {
		next, ok := m.step(in, end)
		if !ok {
			break
		}
		end = next
		count++
		m.steps++
	}
	return count, end
}

// counted is loop for a loop with an upper bound.
func (m *machine) counted(in *inst, pc int32, pos int) (int, bool) {
	c := &m.memo.counted[in.counted]
	m.slide(in, &c.least, pos, int(in.min))
	if c.least.count < int(in.min) {
		return 0, false
	}
	m.slide(in, &c.most, pos, int(in.max))
	from, to := c.most.end, c.least.end
	if in.mode == lazy {
		from, to = to, from
	}
	if in.mode != possessive {
		if m.slotBits(in, from) == 0 {
			from = m.skipFailed(c, from, to)
		}
		m.stack = append(m.stack, frame{kind: frameLoop, pc: pc, pos: from, limit: to})
	}
	return from, true
}

// nextEnd records that the rest of the pattern fails from pos and returns the next position to try
// on the way to limit; ok is false if pos is limit.
func (m *machine) nextEnd(in *inst, pos, limit int) (next int, ok bool) {
	c := &m.memo.counted[in.counted]
	// The outcome depends on the position alone if no iteration of an enclosing loop began there.
	if m.slotBits(in, pos) == 0 {
		m.noteFailed(c, pos)
	}
	if pos == limit {
		return pos, false
	}
	return m.skipFailed(c, m.back(pos, limit < pos), limit), true
}

// skipFailed returns the first position at or after pos that is not known to fail, or limit.
func (m *machine) skipFailed(c *countedLoop, pos, limit int) int {
	left := limit < pos
	switch f, ok := c.find(pos); {
	case !ok:
		return pos
	case left && f.low > limit:
		return m.back(f.low, true)
	case !left && f.high < limit:
		return m.back(f.high, false)
	}
	return limit
}

// find returns the stretch of failures that contains pos and moves it to the front.
func (c *countedLoop) find(pos int) (stretch, bool) {
	for i, f := range c.failed {
		if f.low <= pos && pos <= f.high && f.used {
			copy(c.failed[1:i+1], c.failed[:i])
			c.failed[0] = f
			return f, true
		}
	}
	return stretch{}, false
}

// noteFailed adds pos to the stretches of failures. If there is no room, it replaces the least
// recently used one.
func (m *machine) noteFailed(c *countedLoop, pos int) {
	if _, ok := c.find(pos); ok {
		return
	}
	f := stretch{true, pos, pos}
	if pos > 0 {
		if left, ok := c.find(m.back(pos, true)); ok {
			f.low = left.low
			c.failed[0] = stretch{}
		}
	}
	if pos < len(m.text) {
		if right, ok := c.find(m.back(pos, false)); ok {
			f.high = right.high
			c.failed[0] = stretch{}
		}
	}
	i := 0
	for i < len(c.failed)-1 && c.failed[i].used {
		i++
	}
	copy(c.failed[1:i+1], c.failed[:i])
	c.failed[0] = f
}
