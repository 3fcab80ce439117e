package source

import (
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// A framer finds the records of one input, as a frame.Framer does.
type framer interface {
	next(dst []byte, rec *Record) ([]byte, error)
	At() *frame.Place
	State() uint32
	Restore(state uint32)
}

// A textFramer is a framer of package frame.
type textFramer struct{ frame.Framer }

func (t textFramer) next(dst []byte, rec *Record) ([]byte, error) { return t.Next(dst, &rec.Record) }

// newFramer returns the framer of an input, or of a member of an archive, that has a format.
func newFramer(format Format, w *frame.Window, o *frame.Options) (framer, error) {
	if frames := format.layout().frames; frames != nil {
		f, err := frames(w, o)
		if err != nil {
			return nil, err
		}
		return textFramer{f}, nil
	}
	return nil, fault.Of(cause.Unsupported, "format %s", format)
}

// An openedInput is an open input with its framer, which is nil until the beginning was read, as is the
// framer's place.
type openedInput struct {
	framer
	place *frame.Place
	input input
	raw   *rawFile // the file that the input is read from; nil for generated text
}

// An input is what is read of one: text in the reader's window, a file of columns, or generated text.
type input interface {
	place(p *Position)                  // adds where the input is, without what takes time
	consumed() int64                    // how far into the file reading is
	border() (offset int64, ok bool)    // whether a range may end here, and where that is
	reached(to *Mark) bool              // whether a range that ends there is read
	span() (sum checksum.Sum, to int64) // ends a stretch that has a checksum of its own
	finish() Finished                   // what the input held that was read to its end
}
