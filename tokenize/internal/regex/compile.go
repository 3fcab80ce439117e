package regex

import "slices"

type opcode uint8

const (
	opMatch    opcode = iota // the end of the program or of a sub-program
	opSet                    // one character of set
	opLoop                   // min to max characters of set
	opSplit                  // x first, then y
	opJump                   // goes to x
	opAssert                 // a condition on the position
	opLook                   // look-around by the sub-program at x
	opAtomic                 // the sub-program at x, without backtracking into it
	opGrapheme               // one grapheme cluster
	opMark                   // save the position in slot: an iteration begins
	opProgress               // goes to x if the iteration consumed something since opMark
)

// inst is one instruction. Execution continues with the next one unless the opcode says otherwise.
type inst struct {
	op     opcode
	set    *charSet // for opSet and opLoop; for opSplit the characters with which x can begin, nil if unknown
	x, y   int32
	min    int32
	max    int32 // infinite or the upper bound
	mode   repeatMode
	assert assertKind
	back   bool // moves to the left: inside look-behind
	negate bool
	ascii  bool
	memo   bool  // the outcome here may be memoized
	slot   int32 // for opMark and opProgress
	// counted is the index of an opLoop among those with a large upper bound, or -1.
	counted int32
	active  []int32
}

type program struct {
	insts    []inst
	slots    int
	setBytes int      // memory of the sets
	counted  int      // number of loops with a large upper bound
	first    *charSet // the characters with which a match can begin, nil if unknown
	word     *charSet
	// Grapheme clusters; nil if the program has no opGrapheme.
	clusters *clusterSets
}

// Limits of a program. Counted repeats are expanded, so a short pattern can make a huge program.
const (
	maxInsts = 20000
	maxSlots = 16
	// maxSetBytes bounds the sets of a program; a set of many scripts takes up to 30 KB.
	maxSetBytes = 6 << 20
	instBytes   = 96
)

type compiler struct {
	pattern string
	prog    *program
	sets    map[string]*charSet
	active  []int32 // slots of the enclosing loops in this sub-program
}

func compile(pattern string, root *node) *program {
	c := &compiler{pattern: pattern, prog: &program{}, sets: make(map[string]*charSet)}
	c.emitNode(root, false)
	c.emit(inst{op: opMatch})
	if first, ok := root.first(); ok {
		c.prog.first = c.set(first)
	}
	c.prog.markJoins()
	return c.prog
}

func (c *compiler) fail(reason string) {
	panic(&SyntaxError{Pattern: c.pattern, Reason: reason, TooLarge: true})
}

// set returns the compiled form of s; equal sets share it.
func (c *compiler) set(s runeSet) *charSet {
	key := make([]byte, 0, len(s)*8)
	for _, r := range s {
		key = append(key, byte(r.lo), byte(r.lo>>8), byte(r.lo>>16), byte(r.hi), byte(r.hi>>8), byte(r.hi>>16))
	}
	if cs := c.sets[string(key)]; cs != nil {
		return cs
	}
	cs := newCharSet(s)
	if c.prog.setBytes += cs.bytes() + len(key); c.prog.setBytes > maxSetBytes {
		c.fail(tooLarge)
	}
	c.sets[string(key)] = cs
	return cs
}

func (c *compiler) emit(i inst) int32 {
	if len(c.prog.insts) >= maxInsts {
		c.fail(tooLarge)
	}
	i.active, i.counted = c.active, -1
	if i.op == opLoop && i.max != infinite && i.max >= minCounted {
		i.counted = int32(c.prog.counted)
		c.prog.counted++
	}
	c.prog.insts = append(c.prog.insts, i)
	return int32(len(c.prog.insts) - 1)
}

func (c *compiler) here() int32 { return int32(len(c.prog.insts)) }

func (c *compiler) emitNode(n *node, back bool) {
	switch n.kind {
	case nodeEmpty:
	case nodeSet:
		c.emit(inst{op: opSet, set: c.set(n.set), back: back})
	case nodeCat:
		for i := range n.subs {
			if back {
				i = len(n.subs) - 1 - i
			}
			c.emitNode(n.subs[i], back)
		}
	case nodeAlt:
		c.emitAlternatives(n, back)
	case nodeRepeat:
		c.emitRepeat(n, back)
	case nodeLook:
		at := c.emit(inst{op: opLook, negate: n.negate})
		c.prog.insts[at].x = c.emitSub(n.subs[0], n.behind, at)
	case nodeAtomic:
		at := c.emit(inst{op: opAtomic})
		c.prog.insts[at].x = c.emitSub(n.subs[0], back, at)
	case nodeAssert:
		if n.assert == assertWord || n.assert == assertNotWord {
			c.prog.word = c.set(property("word"))
		}
		c.emit(inst{op: opAssert, assert: n.assert, ascii: n.ascii})
	case nodeGrapheme:
		if c.prog.clusters == nil {
			c.prog.clusters = newClusterSets(c)
		}
		c.emit(inst{op: opGrapheme})
	}
}

// emitSub emits a sub-program after the instruction that runs it, whose y skips it.
func (c *compiler) emitSub(n *node, back bool, at int32) int32 {
	start := c.here()
	active := c.active
	c.active = nil
	c.emitNode(n, back)
	c.emit(inst{op: opMatch})
	c.active = active
	c.prog.insts[at].y = c.here()
	return start
}

func (c *compiler) emitAlternatives(n *node, back bool) {
	var ends []int32
	for i, s := range n.subs {
		if i == len(n.subs)-1 {
			c.emitNode(s, back)
			break
		}
		split := c.emit(inst{op: opSplit})
		if first, ok := s.first(); ok && !back {
			c.prog.insts[split].set = c.set(first)
		}
		c.prog.insts[split].x = c.here()
		c.emitNode(s, back)
		ends = append(ends, c.emit(inst{op: opJump}))
		c.prog.insts[split].y = c.here()
	}
	for _, e := range ends {
		c.prog.insts[e].x = c.here()
	}
}

func (c *compiler) emitRepeat(n *node, back bool) {
	body := n.subs[0]
	if n.mode == possessive && body.kind != nodeSet {
		at := c.emit(inst{op: opAtomic})
		c.prog.insts[at].x = c.emitSub(&node{kind: nodeRepeat, subs: n.subs, min: n.min, max: n.max}, back, at)
		return
	}
	if body.kind == nodeSet {
		set := c.set(body.set)
		lo := n.min
		if n.max == infinite && n.mode != possessive {
			// x{3,} becomes xxx and x*, so that an unbounded loop has no count and its outcome
			// depends on the position alone.
			for ; lo > 0 && lo <= 8; lo-- {
				c.emit(inst{op: opSet, set: set, back: back})
			}
			if lo > 0 {
				c.emit(inst{op: opLoop, set: set, min: int32(lo), max: int32(lo), back: back})
				lo = 0
			}
		}
		c.emit(inst{op: opLoop, set: set, min: int32(lo), max: int32(n.max), mode: n.mode, back: back})
		return
	}
	for range n.min {
		c.emitNode(body, back)
	}
	if n.max == infinite {
		c.emitStar(body, n.mode, back)
		return
	}
	// x{0,3} becomes (x(x(x)?)?)?, with one common exit.
	var exits []int32
	for range n.max - n.min {
		split := c.emit(inst{op: opSplit})
		exits = append(exits, split)
		c.emitNode(body, back)
	}
	for _, s := range exits {
		c.prog.insts[s].x, c.prog.insts[s].y = s+1, c.here()
		if n.mode == lazy {
			c.prog.insts[s].x, c.prog.insts[s].y = c.here(), s+1
		}
	}
}

// emitStar emits an unbounded loop. If the body can match the empty string, an iteration that
// consumed nothing ends the loop.
func (c *compiler) emitStar(body *node, mode repeatMode, back bool) {
	nullable := body.nullable()
	head := c.emit(inst{op: opSplit})
	if nullable {
		slot := int32(c.prog.slots)
		if c.prog.slots++; len(c.active) >= maxSlots || c.prog.slots > maxInsts {
			c.fail("repeats of what may be empty are nested too deeply")
		}
		c.emit(inst{op: opMark, slot: slot})
		saved := c.active
		c.active = append(slices.Clone(c.active), slot)
		c.emitNode(body, back)
		c.emit(inst{op: opProgress, slot: slot, x: head})
		c.active = saved
	} else {
		c.emitNode(body, back)
		c.emit(inst{op: opJump, x: head})
	}
	in := &c.prog.insts[head]
	in.x, in.y = head+1, c.here()
	if mode == lazy {
		in.x, in.y = in.y, in.x
	} else if first, ok := body.first(); ok && !back {
		in.set = c.set(first)
	}
}

// markJoins finds the instructions that more than one path leads to. It suffices to memoize there:
// between them, paths only diverge.
func (p *program) markJoins() {
	ways := make([]int, len(p.insts))
	lead := func(to int32) {
		if int(to) < len(ways) {
			ways[to]++
		}
	}
	for i := range p.insts {
		in := &p.insts[i]
		next := int32(i + 1)
		switch in.op {
		case opMatch:
		case opJump:
			lead(in.x)
		case opSplit:
			lead(in.x)
			lead(in.y)
		case opProgress:
			lead(in.x)
			lead(next)
		case opLook, opAtomic:
			lead(in.x)
			lead(in.y)
		case opLoop:
			lead(next)
			lead(next) // after every number of iterations
		default:
			lead(next)
		}
	}
	for i := range p.insts {
		if in := &p.insts[i]; in.op == opLook || in.op == opAtomic {
			ways[i], ways[in.x] = 2, 2 // a sub-program is run once from each position
		}
	}
	for i := range p.insts {
		in := &p.insts[i]
		in.memo = (ways[i] > 1 || in.op == opLoop) && in.op != opMatch && in.op != opMark
	}
}
