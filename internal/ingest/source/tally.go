package source

// A Tally adds up what was counted of a set's inputs, in their order. Its position is that of a
// Reader that has read them all.
type Tally struct {
	set    *Set
	r      *Reader
	unread map[int]bool // the lines of Set.Known of which an input was not read
}

// Tally returns a Tally at the beginning of the set.
func (s *Set) Tally() (*Tally, error) {
	r, err := s.Reader(Position{})
	if err != nil {
		return nil, err
	}
	return &Tally{set: s, r: r, unread: map[int]bool{}}, nil
}

// Add adds the next input.
func (t *Tally) Add(c *Counted) (err error) {
	r := t.r
	if r.in, err = t.set.inputForCount(r.at.Input); err != nil {
		return err
	}
	if c.Spans == nil && r.in.Synth == nil {
		t.unread[len(r.at.Done)] = true
	}
	r.at.Ordinal += c.Documents
	r.noteTrailing(c.trailing)
	return r.leaveInput(c.done, r.at.Members.plus(c.members))
}

// Position returns the position after the inputs that were added.
func (t *Tally) Position() Position { return t.r.at }

// Unread reports whether an input of the i-th line of Set.Known was not read, so that its checksum is
// not known.
func (t *Tally) Unread(i int) bool { return t.unread[i] }

// Close returns cause.NoDocuments, as an error about the set, where all that was added holds none.
func (t *Tally) Close() error {
	if t.r.at.Ordinal == 0 && t.set.only == nil {
		return t.set.noDocuments(t.r.at.Members)
	}
	return nil
}
