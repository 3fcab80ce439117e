package source

// Listed returns the i-th input if it is one of those that are kept in memory. Unlike Input it may
// be called while a Reader reads.
func (s *Set) Listed(i int) (Input, bool) {
	if i < 0 || i >= len(s.list.few) {
		return Input{}, false
	}
	return s.list.few[i], true
}

// BytesBefore returns the size on disk of the inputs before the i-th. It reports false if one of
// them has no known size, or is not kept in memory. It may be called while a Reader reads.
func (s *Set) BytesBefore(i int) (n int64, known bool) {
	if i > len(s.list.few) {
		return 0, false
	}
	for k := range i {
		if s.list.few[k].Size < 0 {
			return 0, false
		}
		n += s.list.few[k].Size
	}
	return n, true
}
