// Package decompress reads the text of a file that is stored in some compression, ahead of its reader where that is
// asked for, and from UTF-16. Damage is an error that says what to do, and never fewer bytes than there are.
//
//	file -> Counted -> Open -> ReadAhead -> UTF16Reader -> text
package decompress

import "io"

// A Counted counts what is read of a file and remembers the error that ended it.
type Counted struct {
	Source io.Reader
	N      int64                       // bytes that were read
	Err    error                       // why reading ended, io.EOF too
	Check  func() error                // called at the end: is the file still the one that was opened?
	Watch  func(p []byte, begin int64) // called with what was read and where it begins, where not nil
}

func (r *Counted) Read(p []byte) (int, error) {
	if r.Err != nil {
		return 0, r.Err
	}
	n, err := r.Source.Read(p)
	if r.Watch != nil {
		r.Watch(p[:n], r.N)
	}
	r.N += int64(n)
	if err == io.EOF && r.Check != nil {
		if changed := r.Check(); changed != nil {
			err = changed
		}
	}
	r.Err = err
	return n, err
}
