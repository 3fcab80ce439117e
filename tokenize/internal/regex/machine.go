package regex

import "unicode/utf8"

// A machine runs one program on one text. Its stack holds the alternatives to try when the current
// path fails.
type machine struct {
	prog  *program
	text  []byte
	stack []frame
	slots []int // where the iteration of each loop began

	steps  int // taken so far
	budget int // steps after which outcomes are memoized
	far    int // how far any attempt has looked; looking further adds to budget
	memo   memo
}

type frameKind uint8

const (
	frameTry    frameKind = iota // continue at pc, pos
	frameLoop                    // a loop at pc may end elsewhere: from pos to limit
	frameGrow                    // a lazy loop at pc may take one more character at pos; limit holds the count
	frameSlot                    // restore slot pc to pos
	frameFailed                  // all paths from (pc, pos) failed: memoize that
)

type frame struct {
	kind  frameKind
	pc    int32
	pos   int
	limit int
}

const (
	noMatch      = -1
	restart      = -2 // the machine began to memoize: the attempt must restart
	stepsPerByte = 24
	spareSteps   = 4096
	// keepStack is the largest stack, in frames, that a pooled machine keeps.
	keepStack = 1 << 14
)

func newMachine(p *program) *machine {
	m := &machine{prog: p, slots: make([]int, p.slots)}
	m.memo.counted = make([]countedLoop, p.counted)
	for i := range m.slots {
		m.slots[i] = noMatch
	}
	return m
}

func (m *machine) begin(text []byte) {
	m.text, m.steps, m.far, m.budget = text, 0, 0, spareSteps
	m.memo.on = false
}

func (m *machine) finish() {
	m.text = nil
	m.stack = m.stack[:0]
	if cap(m.stack) > keepStack {
		m.stack = nil
	}
	m.memo.shrink()
}

// search finds the first match at or after from.
func (m *machine) search(from int) (start, end int) {
	first := m.prog.first
	for pos := from; pos <= len(m.text); {
		if first != nil {
			for pos < len(m.text) {
				c, n := decode(m.text, pos)
				if first.has(c) {
					break
				}
				pos += n
			}
			if pos == len(m.text) {
				return noMatch, noMatch
			}
		}
		m.look(pos)
		end := m.run(0, pos)
		if end == restart {
			m.stack = m.stack[:0]
			end = m.run(0, pos)
		}
		if end != noMatch {
			return pos, end
		}
		if pos == len(m.text) {
			break
		}
		_, n := decode(m.text, pos)
		pos += n
	}
	return noMatch, noMatch
}

// look records that an attempt has reached pos, which allows more steps.
func (m *machine) look(pos int) {
	if pos > m.far {
		m.far = pos
		m.budget = spareSteps + stepsPerByte*m.far
	}
}

// run executes the program or sub-program at pc from pos and returns where its match ends, noMatch
// or restart. It is one switch over the instructions, so that pc and pos stay local variables.
func (m *machine) run(pc int32, pos int) int {
	base, sub := len(m.stack), pc != 0
	text, insts := m.text, m.prog.insts
	for {
		in := &insts[pc]
		m.steps++
		if m.memo.on {
			if in.memo {
				key := m.key(in, pc, pos)
				if end, known := m.memo.get(key); known {
					if end == noMatch {
						goto fail
					}
					m.succeed(base, end, sub)
					return end
				}
				m.stack = append(m.stack, frame{kind: frameFailed, pc: pc, pos: pos})
			}
		} else if m.steps > m.budget {
			m.look(pos)
			if m.steps > m.budget && len(text) <= maxMemoText {
				// Restart the attempt: the states on the stack now would not be memoized.
				m.memo.start()
				return restart
			}
		}

		switch in.op {
		case opMatch:
			m.succeed(base, pos, sub)
			return pos
		case opSet:
			if next, ok := m.step(in, pos); ok {
				pos = next
				pc++
				continue
			}
			goto fail
		case opSplit:
			if in.set != nil {
				if pos == len(text) {
					pc = in.y
					continue
				}
				c := rune(text[pos])
				if c >= utf8.RuneSelf {
					c, _ = decode(text, pos)
				}
				if !in.set.has(c) {
					pc = in.y
					continue
				}
			}
			m.stack = append(m.stack, frame{kind: frameTry, pc: in.y, pos: pos})
			pc = in.x
			continue
		case opJump:
			pc = in.x
			continue
		case opLoop:
			if m.memo.on && in.max == infinite && in.min == 0 && in.mode != possessive {
				// Take one character at a time, so that each state is memoized.
				switch next, ok := m.step(in, pos); {
				case !ok:
					pc++
				case in.mode == lazy:
					m.stack = append(m.stack, frame{kind: frameTry, pc: pc, pos: next})
					pc++
				default:
					m.stack = append(m.stack, frame{kind: frameTry, pc: pc + 1, pos: pos})
					pos = next
				}
				continue
			}
			next, ok := m.loop(in, pc, pos)
			if !ok {
				goto fail
			}
			pos = next
			pc++
			continue
		case opAssert:
			if !m.holds(in, pos) {
				goto fail
			}
			pc++
			continue
		case opLook:
			end := m.run(in.x, pos)
			if end == restart {
				return restart
			}
			if (end != noMatch) == in.negate {
				goto fail
			}
			pc = in.y
			continue
		case opAtomic:
			end := m.run(in.x, pos)
			if end == restart {
				return restart
			}
			if end == noMatch {
				goto fail
			}
			pos, pc = end, in.y
			continue
		case opGrapheme:
			if pos == len(text) {
				goto fail
			}
			end := m.prog.clusters.end(text, pos)
			m.steps += end - pos
			pos = end
			pc++
			continue
		case opMark:
			m.stack = append(m.stack, frame{kind: frameSlot, pc: in.slot, pos: m.slots[in.slot]})
			m.slots[in.slot] = pos
			pc++
			continue
		case opProgress:
			if m.slots[in.slot] != pos {
				pc = in.x
			} else {
				pc++
			}
			continue
		}
	fail:
		var ok bool
		if pc, pos, ok = m.backtrack(base); !ok {
			return noMatch
		}
	}
}

// backtrack pops the next alternative off the stack.
func (m *machine) backtrack(base int) (pc int32, pos int, ok bool) {
	for len(m.stack) > base {
		top := len(m.stack) - 1
		f := &m.stack[top]
		switch f.kind {
		case frameTry:
			pc, pos = f.pc, f.pos
			m.stack = m.stack[:top]
			return pc, pos, true
		case frameLoop:
			in := &m.prog.insts[f.pc]
			m.steps++
			if m.memo.on && in.counted >= 0 {
				if pos, ok = m.nextEnd(in, f.pos, f.limit); !ok {
					break
				}
				f.pos = pos
				return f.pc + 1, pos, true
			}
			pos = m.back(f.pos, !in.back)
			f.pos = pos
			pc = f.pc + 1
			if pos == f.limit {
				m.stack = m.stack[:top]
			}
			return pc, pos, true
		case frameGrow:
			in := &m.prog.insts[f.pc]
			m.steps++
			next, ok := m.step(in, f.pos)
			if !ok {
				m.stack = m.stack[:top]
				continue
			}
			f.pos = next
			f.limit++
			pc, pos = f.pc+1, next
			if f.limit == int(in.max) {
				m.stack = m.stack[:top]
			}
			return pc, pos, true
		case frameSlot:
			m.slots[f.pc] = f.pos
		case frameFailed:
			if m.memo.on {
				m.memo.put(m.key(&m.prog.insts[f.pc], f.pc, f.pos), noMatch)
			}
		}
		m.stack = m.stack[:top]
	}
	return 0, 0, false
}

// succeed ends a run. In a sub-program, which other attempts may run again, it memoizes this end
// for every state on the path. It restores slots on the way, since a state's key depends on them.
func (m *machine) succeed(base, end int, sub bool) {
	if m.memo.on && sub {
		for i := len(m.stack) - 1; i >= base; i-- {
			switch f := &m.stack[i]; f.kind {
			case frameSlot:
				m.slots[f.pc] = f.pos
			case frameFailed:
				m.memo.put(m.key(&m.prog.insts[f.pc], f.pc, f.pos), end)
			}
		}
	}
	m.stack = m.stack[:base]
}

// key identifies a state: the instruction, the position, and for each enclosing loop whether its
// iteration has consumed nothing yet, the only use of a slot.
func (m *machine) key(in *inst, pc int32, pos int) uint64 {
	// 15 bits of instruction, 16 of slots and 32 of position, so that distinct states have distinct
	// keys.
	return uint64(pos)<<31 | m.slotBits(in, pos)<<15 | uint64(pc)
}

func (m *machine) slotBits(in *inst, pos int) (bits uint64) {
	for i, s := range in.active {
		if m.slots[s] == pos {
			bits |= 1 << i
		}
	}
	return bits
}

// step matches one character of in.set at pos, to the right or to the left.
func (m *machine) step(in *inst, pos int) (int, bool) {
	if in.back {
		if pos == 0 {
			return 0, false
		}
		c, n := utf8.DecodeLastRune(m.text[:pos])
		return pos - n, in.set.has(c)
	}
	if pos >= len(m.text) {
		return 0, false
	}
	if c := m.text[pos]; c < utf8.RuneSelf {
		return pos + 1, in.set.ascii[c>>6]>>(c&63)&1 != 0
	}
	c, n := decode(m.text, pos)
	return pos + n, in.set.has(c)
}

// back returns the neighbour of pos on the left (or right).
func (m *machine) back(pos int, left bool) int {
	if left {
		if m.text[pos-1] < utf8.RuneSelf {
			return pos - 1
		}
		_, n := utf8.DecodeLastRune(m.text[:pos])
		return pos - n
	}
	_, n := decode(m.text, pos)
	return pos + n
}
