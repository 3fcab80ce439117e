package source

import (
	"io"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/synth"
)

// A generator frames generated text: each document is a record.
type generator struct {
	frame.Place
	spec   *synth.Spec
	offset int64 // bytes generated before
}

// generated text is an input of its own.

func (g *generator) place(p *Position)           { p.Offset = g.offset }
func (g *generator) consumed() int64             { return g.offset }
func (g *generator) border() (int64, bool)       { return g.offset, true }
func (g *generator) reached(to *Mark) bool       { return g.offset >= to.Offset }
func (g *generator) span() (checksum.Sum, int64) { return checksum.Sum{}, -1 } // it needs no checksum
func (g *generator) finish() Finished            { return Finished{Bytes: g.offset} }

func (g *generator) next(dst []byte, rec *Record) ([]byte, error) {
	if g.spec.Ended(g.Row, g.offset) {
		return dst, io.EOF
	}
	rec.Offset, rec.First, rec.Last = g.offset, true, true
	if rec.Decoded = g.spec.Kind != synth.Recipe; !rec.Decoded {
		rec.Columns, rec.Comma = synth.RecipeColumns, ','
	}
	out := g.spec.Append(dst, g.Row)
	g.offset += int64(len(out) - len(dst))
	return out, nil
}
