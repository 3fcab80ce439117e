package ingest

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
)

// damaged records what was left out of damaged inputs under SkipBadRecord.
type damaged struct {
	Last  int    `json:"last"`  // the input of the phase that was counted last, from 1 on
	First string `json:"first"` // what was lost first
}

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
	if lost.Part == source.WholeFile {
		f.state.DamagedCutOff++
	}
	f.b.notice("damaged, left out: %v", bad)
}

// warnings returns what the summary must say about damage to a number of inputs.
func (d *damaged) warnings(inputs int64) []fault.Text {
	if inputs == 0 {
		return nil
	}
	return []fault.Text{fault.Textf("damaged inputs: %d; what could not be read of them is not in the dataset; "+
		"the first: %s",
		inputs, d.First)}
}

// adviseSkip adds to the error of a damaged source that the build can continue without the damaged
// part.
func (b *build) adviseSkip(err error) error {
	var input *source.InputError
	if b.opts.OnBadRecord == option.SkipBadRecord || !errors.As(err, &input) || !input.Damaged {
		return err
	}
	return fault.Advise(err, "or leave out what cannot be read with {on-bad-record} skip")
}
