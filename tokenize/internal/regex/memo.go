package regex

import (
	"math/bits"
	"slices"
)

// memo stores outcomes of states in a table of bounded size. Collisions evict entries, whose states
// are computed again. Outcomes are stored when a state is left, innermost first, so the machine
// asks first for what was stored last.
type memo struct {
	on     bool
	table  []memoEntry // length is a power of two
	shift  uint        // 64 - log2(len(table)/memoWays)
	writes int

	counted []countedLoop // indexed by the loop's number
}

type memoEntry struct {
	key uint64 // plus one; 0 is free
	end int    // the match's, or noMatch
}

const (
	memoWays = 4
	minMemo  = 1 << 12 // entries; 64 KiB
	keepMemo = 1 << 16 // the most that a pooled machine keeps
	maxMemo  = 1 << 18 // 4 MiB
	// maxMemoText is the length of the longest text for which keys are distinct.
	maxMemoText = 1<<32 - 2
)

// start turns memoization on with an empty table.
func (m *memo) start() {
	m.on = true
	m.resize(minMemo)
	clear(m.counted)
}

func (m *memo) resize(n int) {
	if cap(m.table) >= n {
		m.table = m.table[:n]
		clear(m.table)
	} else {
		m.table = make([]memoEntry, n)
	}
	m.writes, m.shift = 0, uint(65-bits.Len(uint(n/memoWays)))
}

// shrink drops a table that has grown large.
func (m *memo) shrink() {
	m.on = false
	if cap(m.table) > keepMemo {
		m.table = nil
	}
}

// line returns the entries that may hold a key, newest first: as many as fit a cache line.
func (m *memo) line(key uint64) *[memoWays]memoEntry {
	return (*[memoWays]memoEntry)(m.table[key*0x9E3779B97F4A7C15>>m.shift*memoWays:])
}

func (m *memo) get(key uint64) (end int, known bool) {
	for _, e := range m.line(key) {
		if e.key == key+1 {
			return e.end, true
		}
	}
	return 0, false
}

func (m *memo) put(key uint64, end int) {
	if m.writes++; m.writes > len(m.table)/4 && len(m.table) < maxMemo {
		m.grow()
	}
	line := m.line(key)
	i := 0
	for i < memoWays-1 && line[i].key != key+1 && line[i].key != 0 {
		i++
	}
	copy(line[1:i+1], line[:i])
	line[0] = memoEntry{key + 1, end}
}

func (m *memo) grow() {
	old := slices.Clone(m.table)
	m.resize(len(old) * 4)
	for _, e := range slices.Backward(old) {
		if e.key != 0 {
			m.put(e.key-1, e.end)
		}
	}
}

// loopKey returns the key for the end of the possessive loop at pc from pos; no state has the same key.
func loopKey(pc int32, pos int) uint64 {
	return 1<<63 | uint64(pos)<<31 | uint64(pc)
}
