package ingest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
)

// Unfinished is how far the build of a folder had come at its last checkpoint. It may be running.
type Unfinished struct {
	Settings json.RawMessage `json:"settings"`
	report.Totals
	Source      string `json:"source,omitempty"` // the input that is read next; "" where all were read
	Row         int64  `json:"row"`              // rows of it that are done
	SourceBytes int64  `json:"source_bytes"`     // read of the sources, as stored
	TotalBytes  int64  `json:"total_bytes"`      // size of all sources; -1 if unknown
}

// ReadUnfinished reads the checkpoint of a folder. It returns shard.ErrNotFound if there is none.
func ReadUnfinished(fsys shardfile.ReadFS, dir string) (*Unfinished, error) {
	saved, err := dataset.ReadUnfinished(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of %s: %w", dir, err)
	}
	u := &Unfinished{Settings: saved.Settings, TotalBytes: -1}
	if saved.Cursor == nil {
		return u, nil // claimed, and nothing built
	}
	c, _, err := decodeCursor(saved.Cursor)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", dir, err)
	}
	u.Totals, u.SourceBytes, u.Row = c.Totals, c.SourceBytes, c.Position.Row
	if known := c.Position.Known; len(known) > 0 {
		u.TotalBytes = 0
		for _, in := range known {
			if in.Size < 0 {
				u.TotalBytes = -1
				break
			}
			u.TotalBytes += in.Size
		}
		if i := c.Position.Input; i >= 0 && i < len(known) {
			u.Source = known[i].URI
		}
	}
	return u, nil
}

// Losses are sentences about what filters left out so far.
func (u *Unfinished) Losses() []fault.Text { return report.Dropped(u.Counts) }

// pins returns the commits at which an earlier run of a build read repositories, "" for none. A resumed build reads what
// it began with, even if the branch has moved since. What cannot be read of the folder's checkpoint is reported later,
// when the build resumes from it.
func pins(o *option.Options) (of func(repository string) (commit string)) {
	commits := sync.OnceValue(func() map[string]string {
		saved, err := dataset.ReadUnfinished(o.FS, o.Out)
		if o.Overwrite || err != nil || saved.Cursor == nil {
			return nil
		}
		c, _, err := decodeCursor(saved.Cursor)
		if err != nil {
			return nil
		}
		commits := map[string]string{}
		for _, end := range append([]phaseEnd{{Position: c.Position}}, c.Ends...) {
			for _, in := range end.Position.Known {
				if in.Revision != "" {
					commits[remote.Repository(in.URI)] = in.Revision
				}
			}
		}
		return commits
	})
	return func(repository string) string { return commits()[repository] }
}
