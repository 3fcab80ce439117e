package source

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

// Holds estimates what the i-th input holds: bytes of text, -1 if it has no known end, and the rows of a file of
// columns, which are counted without reading them, -1 for other inputs and where damage hides them.
func (s *Set) Holds(i int) (textBytes, rows int64, err error) {
	in, err := s.list.at(i)
	if err != nil || !in.Format.isColumnar() {
		return in.textBytes, -1, err
	}
	c, err := s.countTable(&in, newCutting(&in, nil))
	if err != nil {
		return in.textBytes, -1, nil // the build finds out
	}
	return in.textBytes, c.Documents, nil
}
