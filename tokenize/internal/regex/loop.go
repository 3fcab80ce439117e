package regex

// loop matches a run of characters of one set.
func (m *machine) loop(in *inst, pc int32, pos int) (int, bool) {
	if m.memo.on && in.counted >= 0 {
		return m.counted(in, pc, pos)
	}
	count, start := 0, pos
	remember := m.memo.on && in.mode == possessive && in.max == infinite
	least := pos // where the lower bound is reached
	limit := int(in.max)
	if in.mode == lazy {
		limit = int(in.min)
	}
	for limit == infinite || count < limit {
		next, ok := m.step(in, pos)
		if !ok {
			break
		}
		if remember && count >= int(in.min) && crosses(pos, next) {
			if end, known := m.memo.get(loopKey(pc, next)); known {
				pos = end
				count = int(in.min)
				remember = false
				break
			}
		}
		pos = next
		if count++; count == int(in.min) {
			least = pos
		}
	}
	m.steps += count
	m.look(pos)
	if count < int(in.min) {
		return 0, false
	}
	switch in.mode {
	case possessive:
		if remember {
			m.rememberEnd(in, pc, start, pos)
		}
	case lazy:
		if count != int(in.max) {
			m.stack = append(m.stack, frame{kind: frameGrow, pc: pc, pos: pos, limit: count})
		}
	default:
		if pos != least {
			m.stack = append(m.stack, frame{kind: frameLoop, pc: pc, pos: pos, limit: least})
		}
	}
	return pos, true
}

// rememberEnd memoizes the end of a possessive loop from start to end, at the positions that
// crosses selects.
func (m *machine) rememberEnd(in *inst, pc int32, start, end int) {
	for pos := start; pos < end; {
		next, _ := m.step(in, pos)
		if crosses(pos, next) {
			m.memo.put(loopKey(pc, next), end)
		}
		pos = next
	}
}

// crosses selects about every 64th position of a text, wherever a loop began.
func crosses(pos, next int) bool { return pos>>6 != next>>6 }
