package ingest

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
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

// adviseSkip adds to the error of a damaged source that the build can continue without the damaged
// part.
func (b *build) adviseSkip(err error) error {
	var input *source.InputError
	if b.opts.OnBadRecord == option.SkipBadRecord || !errors.As(err, &input) || !input.Damaged {
		return err
	}
	if errors.Is(err, cause.Malformed) {
		return fault.Advise(err, "fix it, or leave out what cannot be read with {on-bad-record} skip")
	}
	return fault.Advise(err, "or leave out what cannot be read with {on-bad-record} skip")
}
