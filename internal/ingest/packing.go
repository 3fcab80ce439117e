package ingest

import (
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/rows"
	"github.com/dsload/dsload/internal/pack"
)

// splits are the names of the splits that rows are packed for.
var splits = [...]string{rows.Train: splitTrain, rows.Val: splitVal}

// newPacking returns the packing of a flusher, nil if rows are not packed.
func (f *flusher) newPacking() *rows.Packing {
	if f.b.opts.Pack == pack.None {
		return nil
	}
	f.state.DroppedTokens = new(int64)
	c := f.b.PackConfig(f.b.Shards.Schema)
	c.Counts, c.Rest = &f.state.Counts, &f.state.PackRest
	c.Wanted, c.Changed = f.wanted, f.heldOut
	c.Write = func(split int, row *dataset.Example) error { return f.write(splits[split], row) }
	return rows.New(c)
}

// packExample gives an example of a split to the packing.
func (f *flusher) packExample(split int, ex *example.Example) error {
	f.since++ // a checkpoint keeps it
	if err := f.pack.Add(split, ex); err != nil {
		return err
	}
	if o := &f.b.opts; o.MaxTokens > 0 && f.state.Tokens+f.pack.HeldTokens() >= o.MaxTokens {
		return f.pack.PackAll()
	}
	f.heldOut()
	return nil
}

// wanted returns how many tokens of a split are worth holding: those of the rows that its budget
// leaves.
func (f *flusher) wanted(split int) int64 {
	o, s := &f.b.opts, &f.state
	rows, have := o.MaxExamples, s.Train
	if splits[split] == splitVal {
		rows, have = o.MaxValExamples, s.Val
	}
	if rows == 0 {
		return f.pack.Window
	}
	return (rows - have) * int64(o.MaxLength)
}

// heldOut gives the holdout the size of its split so far, including what waits to be packed.
func (f *flusher) heldOut() {
	f.hold.Have = f.state.Val + f.pack.Held(rows.Val)/int64(f.pack.Length)
}

// packRest packs what is left at the end of a phase.
func (f *flusher) packRest() error {
	if f.pack == nil {
		return nil
	}
	stopped := f.stopped
	f.pack.BeginDocument()
	if err := f.pack.PackAll(); err != nil {
		return err
	}
	f.sourcesEnded = stopped == ""
	if stopped != "" {
		f.stopped = stopped // what ended the phase
	}
	return nil
}
