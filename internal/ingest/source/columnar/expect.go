package columnar

// A Span is a part of a file, from one offset to another.
type Span = [2]int64

// An Expecter is a file that is told what of it will be read, so that it can ask for that in a few
// requests.
type Expecter interface {
	// Expect says that spans, in the order of the file, will be read from their beginnings on: one after
	// another, or in turns. It replaces what was expected before.
	Expect(spans []Span, inTurns bool)
}

// tell tells a file what will be read of it, if it is one that wants to know.
func (f *parquetFile) tell(spans []Span, inTurns bool) {
	if e, ok := f.at.(Expecter); ok {
		e.Expect(spans, inTurns)
	}
}

// expectBytes is how far ahead the groups of a single column are told.
const expectBytes = 64 << 20

// expect tells the file which chunks are read from a group on: several columns in turns, one at a time
// through the groups.
func (r *parquetRows) expect(group int) {
	if !r.f.options.Remote {
		return
	}
	var spans []Span
	if len(r.leaves) != 1 {
		for _, ch := range r.f.groups.at(group).chunks {
			spans = append(spans, Span{ch.offset, ch.offset + ch.size})
		}
		r.f.tell(spans, true)
		return
	}
	if group >= r.told || group == 0 {
		r.told = group
		for n := int64(0); r.told < r.f.Groups() && n < expectBytes; r.told++ {
			if ch := r.f.groups.at(r.told).chunks[0]; !r.f.groups.at(r.told).skip {
				spans = append(spans, Span{ch.offset, ch.offset + ch.size})
				n += ch.size
			}
		}
		r.f.tell(spans, false)
	}
}
