package build

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/build/source"
)

// damaged counts what was left out of damaged inputs under SkipBadRecord.
type damaged struct {
	Inputs int64  `json:"inputs"` // of which something was lost
	Lost   int64  `json:"lost"`   // those of them whose rest was lost, of unknown length
	Rows   int64  `json:"rows"`   // lost besides, of columns
	Last   int    `json:"last"`   // the input of the phase that was counted last, from 1 on
	First  string `json:"first"`  // what was lost first
}

const (
	counterDamaged     = "damaged_inputs"
	counterDamagedLost = "damaged_inputs_cut_off"
)

// noteDamage counts a bad record that stands for a part of an input, and says so at once.
func (f *flusher) noteDamage(input int, bad *source.RecordError) {
	var lost *source.DamageError
	if !errors.As(bad, &lost) {
		return
	}
	if f.state.Damaged == nil {
		f.state.Damaged = &damaged{First: bad.Error()}
	}
	d := f.state.Damaged
	if d.Last != input+1 {
		d.Inputs, d.Last = d.Inputs+1, input+1
	}
	if d.Rows += lost.Rows; lost.Part == source.WholeFile {
		d.Lost++
	}
	f.b.notice("damaged, left out: %v", bad)
}

// endPhase keeps the inputs of the next phase apart from those of this one.
func (d *damaged) endPhase() {
	if d != nil {
		d.Last = 0
	}
}

func (d *damaged) count(counters map[string]int64) {
	if d != nil {
		counters[counterDamaged] = d.Inputs
		if d.Lost > 0 {
			counters[counterDamagedLost] = d.Lost
		}
	}
}

// warnings returns what the summary must say about damage.
func (d *damaged) warnings() []fault.Text {
	if d == nil {
		return nil
	}
	return []fault.Text{fault.Textf("damaged inputs: %d; what could not be read of them is not in the dataset; "+
		"the first: %s",
		d.Inputs, d.First)}
}

func damageText(inputs, lost int64) string {
	text := fmt.Sprintf("damaged inputs: %d, of which the dataset lacks what could not be read", inputs)
	if lost > 0 {
		text += fmt.Sprintf("; %d of them end early, with an unknown number of documents lost", lost)
	}
	return text + " (see rejects.jsonl)"
}

// damageLosses returns the sentence about damaged inputs, from the counters of a manifest.
func damageLosses(counters map[string]int64) []fault.Text {
	if n := counters[counterDamaged]; n > 0 {
		return []fault.Text{fault.Plain(damageText(n, counters[counterDamagedLost]))}
	}
	return nil
}

// adviseSkip adds to the error of a damaged source that the build can go on without the damaged
// part.
func (b *build) adviseSkip(err error) error {
	var input *source.InputError
	if b.opts.OnBadRecord == SkipBadRecord || !errors.As(err, &input) || !input.Damaged {
		return err
	}
	return fault.Advise(err, "or leave out what cannot be read with {on-bad-record} skip")
}
