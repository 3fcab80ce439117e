package source

// single returns a set of one of the inputs of s, with all that reading it takes. It needs no Close.
func (s *Set) single(in *Input) (*Set, error) {
	one := &Set{opts: s.opts, filter: s.filter, formats: map[Format]int{}, store: s.store, needs: s.needs,
		list: inputList{few: []Input{*in}}, total: in.Size}
	return one, one.makeParts([]listing{{uri: in.URI, n: 1}})
}

// FirstRecords returns a reader of the i-th input alone, from its beginning. The input of its records is
// number 0.
func (s *Set) FirstRecords(i int) (*Reader, error) {
	in, err := s.list.at(i)
	if err != nil {
		return nil, err
	}
	one, err := s.single(&in)
	if err != nil {
		return nil, err
	}
	return one.Reader(Position{})
}

// Whole estimates how many times as much the i-th input holds as was read of it, some documents up to a
// position, and how much text that is in bytes: -1 if it has no known end. The rows of a file of columns are
// counted, without reading them.
func (s *Set) Whole(i int, documents int64, at Position) (times float64, textBytes int64, err error) {
	in, err := s.list.at(i)
	if err != nil || in.textBytes < 0 {
		return 1, -1, err
	}
	if in.Format.isColumnar() && documents > 0 {
		c, err := s.countTable(&in, newCutting(&in, nil))
		if err != nil {
			return 1, in.textBytes, err
		}
		return float64(c.Documents) / float64(documents), in.textBytes, nil
	}
	read := at.Offset
	for _, done := range at.Done {
		read += done.Bytes
	}
	return max(1, float64(in.textBytes)/float64(max(1, read))), in.textBytes, nil
}
