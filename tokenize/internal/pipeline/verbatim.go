package pipeline

import (
	"math"
	"slices"
)

// Verbatim reports whether the tokens of the last text are all of it: nothing was changed, inserted or left
// out, so that each begins where the one before it ends. Widths says how long each is.
func (e *Encoder) Verbatim() bool { return e.verbatim }

// Widths returns how many bytes of a text each of n ids is, 0 where that is not known. It returns nil if no
// text is verbatim.
func (p *Pipeline) Widths(n int) []uint8 {
	if p.Bytes == nil {
		return nil
	}
	widths := make([]uint8, n)
	for id := range min(n, p.Bytes.Len()) {
		if t, _ := p.Bytes.Token(uint32(id)); len(t) <= math.MaxUint8 {
			widths[id] = uint8(len(t))
		}
	}
	tokens := slices.Concat(p.Added.Tokens(), p.AddedNormalized.Tokens())
	for _, t := range tokens {
		if _, known := p.Bytes.Token(t.ID); !known && len(t.Content) <= math.MaxUint8 {
			widths[t.ID] = uint8(len(t.Content))
		}
	}
	for _, t := range tokens { // an id that is several texts
		if int(widths[t.ID]) != len(t.Content) {
			widths[t.ID] = 0
		}
	}
	return widths
}
