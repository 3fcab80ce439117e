package regex

import "slices"

type nodeKind uint8

const (
	nodeEmpty    nodeKind = iota
	nodeSet               // one character of set
	nodeCat               // subs in a row
	nodeAlt               // the first of subs with which the rest matches
	nodeRepeat            // subs[0] min to max times
	nodeLook              // look-around: subs[0] matches here, or does not (negate), ahead or behind
	nodeAtomic            // subs[0], without backtracking into it
	nodeAssert            // a condition on the position
	nodeGrapheme          // an extended grapheme cluster
)

type repeatMode uint8

const (
	greedy repeatMode = iota
	lazy
	possessive
)

type assertKind uint8

const (
	assertTextStart assertKind = iota
	assertTextEnd
	assertTextEndOrNewline
	assertLineStart
	assertLineEnd
	assertWord
	assertNotWord
)

// infinite is the upper bound of a repeat without one.
const infinite = -1

type node struct {
	kind     nodeKind
	subs     []*node
	set      runeSet
	literal  rune // if foldable: the character before folding
	foldable bool // a literal under (?i): neighbours may stand for one character, as ss for U+00DF
	min, max int
	mode     repeatMode
	assert   assertKind
	behind   bool
	negate   bool
	ascii    bool // in an assertion on words: \w is ASCII only
}

func catOf(subs []*node) *node {
	switch len(subs) {
	case 0:
		return &node{kind: nodeEmpty}
	case 1:
		return subs[0]
	}
	return &node{kind: nodeCat, subs: subs}
}

func altOf(subs []*node) *node {
	if len(subs) == 1 {
		return subs[0]
	}
	return &node{kind: nodeAlt, subs: subs}
}

// nullable reports whether n can match without consuming anything.
func (n *node) nullable() bool {
	switch n.kind {
	case nodeSet, nodeGrapheme:
		return false
	case nodeCat:
		return !slices.ContainsFunc(n.subs, func(s *node) bool { return !s.nullable() })
	case nodeAlt:
		return slices.ContainsFunc(n.subs, (*node).nullable)
	case nodeRepeat:
		return n.min == 0 || n.subs[0].nullable()
	case nodeAtomic:
		return n.subs[0].nullable()
	}
	return true
}

// first returns the characters with which a match of n can begin; ok is false if n may consume
// nothing or if they are unknown.
func (n *node) first() (set runeSet, ok bool) {
	switch n.kind {
	case nodeSet:
		return n.set, true
	case nodeCat:
		var all runeSet
		for _, s := range n.subs {
			if s.kind == nodeLook || s.kind == nodeAssert { // these only restrict matches
				continue
			}
			absent := s.kind == nodeRepeat && s.min == 0 // what follows may begin a match too
			if absent {
				s = s.subs[0]
			}
			f, ok := s.first()
			if !ok {
				return nil, false
			}
			if all = union(all, f); !absent {
				return all, true
			}
		}
	case nodeAlt:
		var all runeSet
		for _, s := range n.subs {
			f, ok := s.first()
			if !ok {
				return nil, false
			}
			all = append(all, f...)
		}
		return all.normalize(), true
	case nodeRepeat, nodeAtomic:
		if n.kind == nodeAtomic || n.min > 0 {
			return n.subs[0].first()
		}
	}
	return nil, false
}
