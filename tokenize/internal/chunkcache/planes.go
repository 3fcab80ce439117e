package chunkcache

import "math/bits"

// Row is a set of ASCII characters.
type Row [2]uint64

// Set adds a character.
func (r *Row) Set(c int) { r[c>>6] |= 1 << (c & 63) }

func (r Row) has(c int) bool { return r[c>>6]>>(c&63)&1 != 0 }

// weight returns the cost of a needless join with c: little for letters, which usually join anyway,
// more for characters that would make chunks rarer or longer.
func weight(c int) int {
	switch {
	case c == ' ' || c == '\n':
		return 1000
	case '0' <= c && c <= '9':
		return 20
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		return 1
	case c < ' ':
		return 2
	}
	return 8
}

// Group sets the tables so that a character in follow[x] joins x. It groups the characters by what
// may follow them, with a bit for each group, and unites groups, those with the fewest needless
// joins first, until at most planes remain.
func (t *Tables) Group(follow *[128]Row, planes int) {
	for k, g := range groupRows(follow, planes) {
		for c := range 128 {
			if g.members.has(c) {
				t.From[c] |= 1 << k
			}
			if g.follow.has(c) {
				t.To[c] |= 1 << k
			}
		}
	}
}

type rowGroup struct {
	members, follow Row
	weight          int
}

// groupRows finds the groups. It keeps the costs of unions, since a union changes only its own.
func groupRows(follow *[128]Row, planes int) []rowGroup {
	var groups []rowGroup
next:
	for c, f := range follow {
		if f == (Row{}) {
			continue
		}
		for i := range groups {
			if groups[i].follow == f {
				groups[i].members.Set(c)
				groups[i].weight += weight(c)
				continue next
			}
		}
		g := rowGroup{follow: f, weight: weight(c)}
		g.members.Set(c)
		groups = append(groups, g)
	}
	var costs [128][128]int // at [i][j] that of groups i and j, j < i
	for i := range groups {
		for j := range i {
			costs[i][j] = unionCost(&groups[i], &groups[j])
		}
	}
	for len(groups) > planes {
		best, bi, bj := -1, 0, 0
		for i := range groups {
			for j, cost := range costs[i][:i] {
				if best < 0 || cost < best {
					best, bi, bj = cost, i, j
				}
			}
		}
		for w := range 2 {
			groups[bj].members[w] |= groups[bi].members[w]
			groups[bj].follow[w] |= groups[bi].follow[w]
		}
		groups[bj].weight += groups[bi].weight
		groups = append(groups[:bi], groups[bi+1:]...)
		for i := bi; i < len(groups); i++ {
			copy(costs[i][:], costs[i+1][:bi])
			copy(costs[i][bi:], costs[i+1][bi+1:])
		}
		for k := range groups {
			if k != bj {
				costs[max(k, bj)][min(k, bj)] = unionCost(&groups[k], &groups[bj])
			}
		}
	}
	return groups
}

// unionCost returns the weight of the needless joins that a union adds.
func unionCost(g, h *rowGroup) int {
	return g.weight*added(g.follow, h.follow) + h.weight*added(h.follow, g.follow)
}

// added returns the weight of the characters that are in b but not in a.
func added(a, b Row) int {
	n := 0
	for w := range 2 {
		for d := b[w] &^ a[w]; d != 0; d &= d - 1 {
			n += weight(w*64 + bits.TrailingZeros64(d))
		}
	}
	return n
}
