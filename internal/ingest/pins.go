package ingest

import (
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/shard"
)

// pins are the commits at which an earlier run of a build read repositories. A resumed build reads what it began
// with, even if the branch has moved since.
type pins struct {
	opts    *option.Options
	commits map[string]string // nil before the first question
}

// of returns the commit of a repository, "" for none.
func (p *pins) of(repository string) string {
	if p.commits == nil {
		p.commits = map[string]string{}
		if !p.opts.Overwrite {
			p.read()
		}
	}
	return p.commits[repository]
}

// read reads the checkpoint of the folder. What cannot be read is reported later, when the
// build resumes from it.
func (p *pins) read() {
	saved, err := shard.ReadUnfinished(p.opts.FS, p.opts.Out)
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
	for _, at := range positions {
		for _, in := range at.Known {
			if in.Revision != "" {
				p.commits[remote.Repository(in.URI)] = in.Revision
			}
		}
	}
}
