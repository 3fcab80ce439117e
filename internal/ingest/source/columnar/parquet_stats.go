package columnar

// A row group whose statistics show that none of its rows can be wanted is not read. Statistics are
// believed only where the format defines their order, and only whole.

// A Condition is on the values of a column.
type Condition struct {
	// Paths are where the column may lie, each as the names of groups and column. The first that the
	// file has is meant.
	Paths [][]string
	// CanHold reports whether a row with such a value may be wanted.
	CanHold func(Stats) bool
}

// Stats is what a file says of the values that a column has in a row group.
type Stats struct {
	Min, Max []byte // JSON values; nil where they are not known
	Null     bool   // there is none
	NaN      bool   // some may be NaN, whatever Min and Max are
}

// A test is a Condition on a wanted leaf.
type test struct {
	*node
	canHold func(Stats) bool
	ordered bool // the file says that its statistics are in the order of the column's type
}

// maxStatBytes is the longest value of statistics that is looked at.
const maxStatBytes = 4 << 10

// openTests finds the columns of the conditions. Those that repeat have no values of their own.
func (f *parquetFile) openTests() {
	if f.over() {
		return
	}
	for _, c := range f.options.Conditions {
		for _, path := range c.Paths {
			n, found := findColumn(f.top, path)
			if n != nil && n.leaf >= 0 && n.rep == 0 {
				f.tests = append(f.tests, test{node: n, canHold: c.CanHold})
			}
			if found {
				break
			}
		}
	}
}

// findColumn returns the node at a path, nil where another has its name or it is a list. found reports
// whether a column has the first name.
func findColumn(among []*node, path []string) (at *node, found bool) {
	for _, n := range among {
		if n.name == path[0] {
			if found {
				return nil, true
			}
			at, found = n, true
		}
	}
	switch {
	case at == nil || len(path) == 1:
		return at, found
	case at.format != plainGroup || at.repetition == repeated:
		return nil, true
	}
	at, _ = findColumn(at.children, path[1:])
	return at, true
}

// statistics are those of a chunk. A value is nil where there is none, or none of use.
type statistics struct {
	min, max       []byte
	oldMin, oldMax []byte // in the order of signed numbers, whatever the column's type is
	nulls          int64  // -1 if not known
}

// statistics reads statistics.
func (c *compact) statistics() (s statistics) {
	s.nulls = -1
	value := func() []byte {
		v, cut := c.text([]byte{}, maxStatBytes)
		if cut {
			return nil
		}
		return v
	}
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			s.oldMax = value()
		case id == 2 && kind == thriftBinary:
			s.oldMin = value()
		case id == 3 && kind == thriftI64:
			s.nulls = c.varint()
		case id == 5 && kind == thriftBinary:
			s.max = value()
		case id == 6 && kind == thriftBinary:
			s.min = value()
		default:
			c.skip(kind)
		}
	})
	return s
}

// judge notes whether the statistics of a chunk rule out all rows of its row group.
func (f *parquetFile) judge(g *rowGroup, slot int, ch *chunk, s *statistics) {
	for i := range f.tests {
		t := &f.tests[i]
		if t.leaf != slot {
			continue
		}
		stats := Stats{Null: ch.values > 0 && s.nulls == ch.values, NaN: t.kind == typeFloat || t.kind == typeDouble}
		ordered := s.min != nil && s.max != nil && !stats.Null
		if ordered {
			stats.Min, stats.Max = t.extent(s.min, s.max)
		} else if (t.kind == typeInt32 || t.kind == typeInt64) && t.mean != meansUnsigned &&
			s.oldMin != nil && s.oldMax != nil {
			stats.Min, stats.Max = t.extent(s.oldMin, s.oldMax)
		}
		if !t.canHold(stats) {
			g.skip = g.skip || !ordered
			g.skipOrdered = g.skipOrdered || ordered
		}
	}
}

// extent returns the ends of statistics as JSON, nil for what has no order as such.
func (n *node) extent(low, high []byte) (least, greatest []byte) {
	width := map[physical]int{typeBoolean: 1, typeInt32: 4, typeInt64: 8, typeFloat: 4, typeDouble: 8}[n.kind]
	switch {
	case n.kind == typeByteArray && n.mean != meansFloat16 && n.mean != meansUUID && n.mean != meansJSON,
		n.kind == typeFixed && n.mean == meansDecimal && len(low) == n.width && len(high) == n.width:
	case width == 0 || len(low) != width || len(high) != width:
		return nil, nil
	}
	switch n.mean {
	case meansTimeMillis, meansTimeMicros, meansTimeNanos:
		return nil, nil // a damaged one may be of another day
	}
	least, greatest = n.appendJSON(nil, low), n.appendJSON(nil, high)
	switch n.mean {
	case meansDate, meansMillis, meansMicros, meansNanos:
		if !hasUsualYear(least) || !hasUsualYear(greatest) {
			return nil, nil
		}
	}
	return least, greatest
}

// hasUsualYear reports whether a date is of the years 0 to 9999, whose texts have the order of the dates.
func hasUsualYear(date []byte) bool { return date[1] != '-' && date[5] == '-' }

// columnOrders reads which columns have statistics in the order of their types, in a list of n.
func (f *parquetFile) columnOrders(c *compact, n int) {
	for leaf := 0; leaf < n && c.err == nil; leaf++ {
		typed := false
		c.fields(func(id int, kind byte) {
			typed = id == 1
			c.skip(kind)
		})
		for _, s := range f.spans {
			if leaf < s.from || leaf >= s.to {
				continue
			}
			for i := range f.tests {
				if f.tests[i].leaf == s.slot+leaf-s.from {
					f.tests[i].ordered = typed
				}
			}
		}
	}
}

// endTests drops what was concluded from statistics whose order is not known.
func (f *parquetFile) endTests() {
	ordered := true
	for i := range f.tests {
		ordered = ordered && f.tests[i].ordered
	}
	for i := range f.groups.len() {
		g := f.groups.at(i)
		g.skip = g.skip || g.skipOrdered && ordered
	}
}
