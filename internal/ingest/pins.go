package ingest

import (
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/shard"
)

// pinned returns the commit at which an earlier run of this build read a repository, "" for none. A
// resumed build reads what it began with, even if the branch has moved since.
func (b *build) pinned(repository string) string {
	if b.pins == nil {
		b.pins = map[string]string{}
		if !b.opts.Overwrite {
			b.findPins()
		}
	}
	return b.pins[repository]
}

// findPins reads the checkpoint of the folder. What cannot be read is reported later, when the
// build resumes from it.
func (b *build) findPins() {
	saved, err := shard.ReadUnfinished(b.opts.FS, b.opts.Out)
	if err != nil || saved.Cursor == nil {
		return
	}
	c, _, err := decodeCursor(saved.Cursor)
	if err != nil {
		return
	}
	positions := []source.Position{c.Position}
	for _, end := range c.Ends {
		positions = append(positions, end.Position)
	}
	for _, p := range positions {
		for _, in := range p.Known {
			if in.Revision != "" {
				b.pins[source.Repository(in.URI)] = in.Revision
			}
		}
	}
}
