package ingest

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
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

// damageLosses returns the sentence about damaged inputs.
func damageLosses(c counts.Counts) []fault.Text {
	if c.DamagedInputs == 0 {
		return nil
	}
	text := fmt.Sprintf("damaged inputs: %d, of which the dataset lacks what could not be read", c.DamagedInputs)
	if c.DamagedCutOff > 0 {
		text += fmt.Sprintf("; %d of them end early, with an unknown number of documents lost", c.DamagedCutOff)
	}
	return []fault.Text{fault.Textf("%s (see rejects.jsonl)", text)}
}

// adviseSkip adds to the error of a damaged source that the build can continue without the damaged
// part.
func (b *build) adviseSkip(err error) error {
	var input *source.InputError
	if b.opts.OnBadRecord == SkipBadRecord || !errors.As(err, &input) || !input.Damaged {
		return err
	}
	return fault.Advise(err, "or leave out what cannot be read with {on-bad-record} skip")
}
