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

// announce passes spans to a file that is an Expecter.
func (f *parquetFile) announce(spans []Span, inTurns bool) {
	if e, ok := f.at.(Expecter); ok {
		e.Expect(spans, inTurns)
	}
}

// expectBytes is how far ahead the groups of a single column are announced.
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
		r.f.announce(spans, true)
		return
	}
	if group >= r.announced || group == 0 {
		r.announced = group
		for n := int64(0); r.announced < r.f.Groups() && n < expectBytes; r.announced++ {
			if ch := r.f.groups.at(r.announced).chunks[0]; !r.f.groups.at(r.announced).skip {
				spans = append(spans, Span{ch.offset, ch.offset + ch.size})
				n += ch.size
			}
		}
		r.f.announce(spans, false)
	}
}
