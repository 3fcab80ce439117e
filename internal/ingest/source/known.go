package source

import "errors"

// ErrNothingNew is the cause where Options.Has knows every file of the arguments.
var ErrNothingNew = errors.New("nothing new to read")

// has reports whether Options.Has knows an input of a folder or a glob.
func (s *Set) has(in Input, look []byte) (bool, error) {
	if s.opts.Has == nil {
		return false, nil
	}
	return s.opts.Has(Stat{URI: in.URI, Size: in.Size, ModTime: in.ModTime, ETag: in.ETag}, func() (string, error) {
		if in.path == "" { // nothing is fetched again to compare it
			return "", nil
		}
		if _, _, err := in.detect(&s.opts, look); err != nil {
			return "", err
		}
		if most := s.opts.MetadataBytes; in.Format.isColumnar() && most > 0 && in.window > most {
			return "", nil // the plan for the memory refuses it
		}
		f, err := s.checksum(&in)
		return f.Sum.Tagged(), err
	})
}

// owned returns which files of a folder Options.Built names as those of a dataset, nil if it holds none.
func (w *walk) owned(path string) func(name string) bool {
	if w.built == nil {
		return nil
	}
	return w.built(path)
}
