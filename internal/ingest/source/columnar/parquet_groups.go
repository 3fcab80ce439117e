package columnar

import "slices"

// A chunk is a column of a row group.
type chunk struct {
	offset, size int64 // where its pages lie in the file, the dictionary first
	values       int64
	codec        int
	uncompressed int64
}

// A rowGroup has the chunks of the wanted leaves.
type rowGroup struct {
	rows   int64
	chunks []chunk
	// none of its rows can be wanted, by statistics alone or by such as the order of columns defines
	skip, skipOrdered bool
}

const (
	groupBytes = 64 // what a row group's metadata takes
	chunkBytes = 48 // what a chunk's takes
)

// measure notes what reading the chunks of a row group takes.
func (f *parquetFile) measure(chunks []chunk) {
	for slot := range chunks {
		f.measureChunk(slot, &chunks[slot])
	}
}

func (f *parquetFile) measureChunk(slot int, ch *chunk) {
	for len(f.most) <= slot {
		f.most = append(f.most, 0)
	}
	f.most[slot] = max(f.most[slot], ch.bound())
}

// bound returns more than the pages of a chunk can take.
func (ch *chunk) bound() int64 { return min(ch.uncompressed+ch.size+4*ch.values, 3<<31) }

// rowGroup reads a row group.
func (f *parquetFile) rowGroup(c *compact) {
	var g rowGroup
	v := [4]int64{3: -1}
	var first *leafReader // reads the first group, whose pages are checked
	if f.numGroups == 0 && !f.options.Remote && !f.options.Lenient {
		first = &leafReader{f: f}
	}
	f.numGroups++
	f.take(groupBytes + int64(f.numWanted)*chunkBytes)
	c.numbers(v[:], func(id int, kind byte) {
		if id != 1 || kind != thriftList {
			c.skip(kind)
			return
		}
		n, _ := c.list()
		if n != f.leaves {
			c.fail("a row group has %d columns, the schema %d", n, f.leaves)
			return
		}
		if !f.over() {
			g.chunks = make([]chunk, f.numWanted)
		}
		f.chunks(c, &g, first)
	})
	if g.rows = v[3]; !f.over() {
		f.groups.add(g)
	}
}

// chunks reads the chunks of a row group.
func (f *parquetFile) chunks(c *compact, g *rowGroup, first *leafReader) {
	spans := f.spans
	var path []byte
	for i := 0; i < f.leaves && c.err == nil; i++ {
		if len(spans) > 0 && i == spans[0].to {
			spans = spans[1:]
		}
		slot := -1
		if len(spans) > 0 && i >= spans[0].from {
			slot = spans[0].slot + i - spans[0].from
		}
		var stats *statistics
		if slices.ContainsFunc(f.tests, func(t test) bool { return t.leaf == slot }) {
			stats = &statistics{}
		}
		ch := c.columnChunk(&path, first != nil, stats)
		if c.err == nil && first != nil {
			c.setErr(f.checkPage(first, &ch, path))
		}
		if stats != nil && c.err == nil {
			f.judge(g, slot, &ch, stats)
		}
		switch {
		case slot < 0:
		case g.chunks != nil:
			g.chunks[slot] = ch
		default:
			f.measureChunk(slot, &ch)
		}
	}
}

// columnChunk reads a chunk, and the column's path and its statistics where they are wanted.
func (c *compact) columnChunk(path *[]byte, wantsPath bool, stats *statistics) (ch chunk) {
	v, outer := [16]int64{9: -1}, [8]int64{}
	*path = (*path)[:0]
	c.numbers(outer[:], func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			if file, _ := c.text(nil, 100); len(file) > 0 {
				c.setErr(unsupported("its columns lie in another file, %q", file))
			}
		case id == 3 && kind == thriftStruct:
			c.numbers(v[:], func(id int, kind byte) {
				switch {
				case id == 3 && kind == thriftList && wantsPath:
					c.path(path)
				case id == 12 && kind == thriftStruct && stats != nil:
					*stats = c.statistics()
				default:
					c.skip(kind)
				}
			})
		case id == 8 && kind == thriftStruct:
			c.setErr(errEncrypted)
		default:
			c.skip(kind)
		}
	})
	ch = chunk{codec: int(v[4]), values: v[5], uncompressed: v[6], size: v[7], offset: v[9]}
	if dictionary := v[11]; dictionary > 0 && dictionary < ch.offset {
		ch.offset = dictionary
	}
	indexes, filter := max(outer[4]+outer[5], outer[6]+outer[7]), v[14]+v[15]
	c.last = max(c.last, ch.offset+ch.size, indexes, filter)
	return ch
}

// path reads the names on the way to a column.
func (c *compact) path(path *[]byte) {
	n, kind := c.list()
	for i := 0; i < n && c.err == nil; i++ {
		if kind != thriftBinary || len(*path) >= maxPathBytes {
			c.skipElement(kind)
			continue
		}
		if i > 0 {
			*path = append(*path, '.')
		}
		*path, _ = c.text(*path, maxPathBytes)
	}
}
