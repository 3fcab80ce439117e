// Package bytetrie is a static trie over bytes in a double array: a step is one load.
//
// The child of a node by byte c lies at base^c and carries c as its label. No two nodes have the
// same base, so the label alone identifies a child (as in the double arrays of Darts-clone). The
// root is node 0.
package bytetrie

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Trie maps byte strings to values. The zero Trie is empty.
type Trie struct {
	units []unit
}

// unit is a node: base<<9 | hasValue<<8 | label, and the value.
type unit struct {
	link  uint32
	value uint32
}

const (
	hasValue = 1 << 8
	baseBit  = 9
	maxUnits = 1 << (32 - baseBit)
)

// Node is a node of the trie.
type Node struct{ link, value uint32 }

// Root returns the node of the empty string.
func (t *Trie) Root() Node {
	if len(t.units) == 0 {
		return Node{}
	}
	return Node(t.units[0])
}

// Step goes from n to its child by c and reports whether there is one. (The root is never taken for
// a child: its label is 0 and no base is 0.)
func (t *Trie) Step(n Node, c byte) (Node, bool) {
	i := n.link>>baseBit ^ uint32(c)
	if i >= uint32(len(t.units)) {
		return Node{}, false
	}
	u := t.units[i]
	return Node(u), u.link&0xFF == uint32(c)
}

// Value returns the value of the string that leads to n, if the trie holds that string.
func (n Node) Value() (uint32, bool) { return n.value, n.link&hasValue != 0 }

// Find returns the value of key.
func (t *Trie) Find(key []byte) (uint32, bool) {
	n := t.Root()
	for _, c := range key {
		var ok bool
		if n, ok = t.Step(n, c); !ok {
			return 0, false
		}
	}
	return n.Value()
}

// Bytes returns the memory that the trie holds.
func (t *Trie) Bytes() int64 { return int64(cap(t.units)) * 8 }

// builder lays out nodes. Free units form a ring in order of index.
type builder struct {
	units      []unit
	used       []bool // the unit is taken
	base       []bool // some node has this base
	next, prev []uint32
	head       uint32 // a free unit, or none
	keys       [][]byte
	values     []uint32
}

const none = ^uint32(0)

// tries is how many free units are tried for a node before the array grows.
const tries = 24

// New builds a trie. keys and values are parallel; the last of equal keys counts. Empty keys are
// ignored.
func New(keys [][]byte, values []uint32) (*Trie, error) {
	order := make([]entry, 0, len(keys))
	for i, k := range keys {
		if len(k) > 0 {
			order = append(order, entry{head(k), i})
		}
	}
	slices.SortFunc(order, func(a, b entry) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(bytes.Compare(keys[a.index], keys[b.index]), cmp.Compare(a.index, b.index))
	})
	b := &builder{head: none, keys: make([][]byte, 0, len(order)), values: make([]uint32, 0, len(order))}
	nodes := 1
	for i, e := range order {
		k := keys[e.index]
		if i+1 < len(order) && order[i+1].head == e.head && bytes.Equal(keys[order[i+1].index], k) {
			continue
		}
		b.keys = append(b.keys, k)
		b.values = append(b.values, values[e.index])
		nodes += len(k)
		if n := len(b.keys); n > 1 {
			nodes -= commonPrefix(b.keys[n-2], k)
		}
	}
	b.reserve(nodes)
	b.grow()
	b.take(0)
	b.units[0].link = 0
	if err := b.insertAll(); err != nil {
		return nil, err
	}
	return &Trie{units: slices.Clip(b.units)}, nil
}

// entry is a key to be sorted: its first eight bytes as a number, which usually decide, and its
// index.
type entry struct {
	head  uint64
	index int
}

func head(key []byte) uint64 {
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// blockUnits is how many units the array grows by.
const blockUnits = 256

// reserve makes room for n nodes and the few holes that usually remain between them.
func (b *builder) reserve(nodes int) {
	size := nodes + nodes/16 + 4*blockUnits
	b.units = make([]unit, 0, size)
	b.used, b.base = make([]bool, 0, size), make([]bool, 0, size)
	b.next, b.prev = make([]uint32, 0, size), make([]uint32, 0, size)
}

// grow adds a block of free units.
func (b *builder) grow() {
	first := uint32(len(b.units))
	b.units = append(b.units, make([]unit, blockUnits)...)
	b.used = append(b.used, make([]bool, blockUnits)...)
	b.base = append(b.base, make([]bool, blockUnits)...)
	for at := first; at < first+blockUnits; at++ {
		b.next = append(b.next, at+1)
		b.prev = append(b.prev, at-1)
	}
	last := first + blockUnits - 1
	if b.head == none {
		b.next[last], b.prev[first] = first, last
		b.head = first
		return
	}
	tail := b.prev[b.head]
	b.next[tail], b.prev[first] = first, tail
	b.next[last], b.prev[b.head] = b.head, last
}

// take removes a unit from the ring of free ones.
func (b *builder) take(i uint32) {
	b.used[i] = true
	n, p := b.next[i], b.prev[i]
	if n == i {
		b.head = none
		return
	}
	b.next[p], b.prev[n] = n, p
	if b.head == i {
		b.head = n
	}
}

// job is a node whose children, the keys from..to at some depth, are to be placed.
type job struct {
	node     uint32
	from, to int
	depth    int
}

func (b *builder) insertAll() error {
	stack := []job{{0, 0, len(b.keys), 0}}
	var labels []byte
	var starts []int
	for len(stack) > 0 {
		j := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		labels, starts = labels[:0], starts[:0]
		for i := j.from; i < j.to; i++ {
			k := b.keys[i]
			if len(k) == j.depth {
				b.units[j.node].link |= hasValue
				b.units[j.node].value = b.values[i]
				continue
			}
			if c := k[j.depth]; len(labels) == 0 || labels[len(labels)-1] != c {
				labels = append(labels, c)
				starts = append(starts, i)
			}
		}
		if len(labels) == 0 {
			continue // only the root has base 0, and no leaf asks for the labels of its children
		}
		base := b.findBase(labels)
		if base >= maxUnits-blockUnits {
			return fmt.Errorf("bytetrie: more than %d nodes", maxUnits)
		}
		b.base[base] = true
		b.units[j.node].link |= base << baseBit
		for i, c := range labels {
			at := base ^ uint32(c)
			b.take(at)
			b.units[at].link = uint32(c)
			to := j.to
			if i+1 < len(labels) {
				to = starts[i+1]
			}
			stack = append(stack, job{at, starts[i], to, j.depth + 1})
		}
	}
	b.seal()
	return nil
}

// seal gives each free unit a label that no lookup at its index asks for, and reserves a base
// without children.
func (b *builder) seal() {
	for len(b.units) < blockUnits {
		b.grow()
	}
	// A base that no node uses, in a block of its own: all of its units are free.
	idle := uint32(len(b.units))
	b.grow()
	b.base[idle] = true
	for i := range b.units {
		u := &b.units[i]
		if b.used[i] {
			if u.link>>baseBit == 0 && i != 0 {
				u.link |= idle << baseBit
			}
			continue
		}
		// A node with base i^c looks up unit i with label c. For a free unit that node has no child
		// c, so the unit's label must differ from c.
		u.link = 0
		for u.link < 255 && b.base[uint32(i)^u.link] {
			u.link++
		}
	}
}

// findBase returns an unused base whose units for labels are free.
func (b *builder) findBase(labels []byte) uint32 {
	if b.head != none {
		at := b.head
		for range tries {
			base := at ^ uint32(labels[0])
			if base != 0 && !b.base[base] && b.fits(base, labels[1:]) {
				return base
			}
			if at = b.next[at]; at == b.head {
				break
			}
		}
		// The next search begins further on, so that units whose bases are used are not tried for each node.
		if len(labels) == 1 {
			b.head = at
		} else {
			b.head = b.next[b.head]
		}
	}
	// Try the newest block, then add new ones. The ring's oldest units may be holes too small for a
	// node with several children, and a block for each such node would make the array many times
	// larger than the nodes need.
	first := uint32(len(b.units) - blockUnits)
	for ; ; first = uint32(len(b.units)) {
		if first == uint32(len(b.units)) {
			b.grow()
		}
		for base := first; base < first+blockUnits; base++ {
			if base != 0 && !b.base[base] && b.fits(base, labels) {
				return base
			}
		}
	}
}

func (b *builder) fits(base uint32, labels []byte) bool {
	for _, c := range labels {
		if b.used[base^uint32(c)] {
			return false
		}
	}
	return true
}
