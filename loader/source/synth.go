package source

import "io"

type synthSpec struct {
	format Format
	seed   uint64
	docs   int64
	bytes  int64
}

const synthBytes = 4 << 20

func (s *synthSpec) size() int64      { return -1 }
func (s *synthSpec) textBytes() int64 { return -1 }

func parseSynth(uri string) (*synthSpec, error) {
	return nil, problemf(ErrUnsupported, "generated text")
}

type generator struct {
	framing
	offset int64
}

func newGenerator(spec synthSpec, row, offset int64) *generator { return &generator{offset: offset} }

func (g *generator) next(dst []byte, rec *Record) ([]byte, error) { return dst, io.EOF }
func (g *generator) state() uint32                                { return 0 }
func (g *generator) restore(uint32)                               {}
