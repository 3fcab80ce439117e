package ingest

import (
	"errors"

	"github.com/dsload/dsload/internal/ingest/source"
)

// noteDamage counts a bad record that stands for a part of an input, and says so at once.
func (f *flusher) noteDamage(input int, bad *source.RecordError) {
	var lost *source.DamageError
	if !errors.As(bad, &lost) {
		return
	}
	d := &f.state.Damaged
	if d.First == "" {
		d.First = bad.Error()
	}
	if d.Last != input+1 {
		d.Last = input + 1
		f.state.DamagedInputs++
	}
	if lost.Lost == source.WholeFile {
		f.state.DamagedCutOff++
	}
	f.b.notice("damaged, left out: %v", bad)
}
