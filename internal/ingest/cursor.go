package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/origins"
)

// cursor is the state of a build between two documents: what a checkpoint saves besides the rows,
// and all that a later run needs to continue.
type cursor struct {
	Phase    int             `json:"phase"`
	Position source.Position `json:"position"`
	Cutter   example.State   `json:"cutter"`             // the unfinished document, if one was cut into pieces
	Answered *job.Answered   `json:"answered,omitempty"` // Map's last answer in this phase

	Verdict   heldout.Verdict `json:"verdict"` // where the unfinished document goes
	TrainFull bool            `json:"train_full"`
	Held      []uint64        `json:"held,omitempty"`
	Share     float64         `json:"share,omitempty"` // heldout.Chooser's

	report.Totals
	IllFormed   report.IllFormed `json:"ill_formed,omitzero"`
	Has         uint64           `json:"where_fields,omitempty"` // fields of the option Where that records have, a bit each
	Names       []string         `json:"first_fields,omitempty"` // of the first record
	Seen        *filter.Mark     `json:"seen,omitempty"`
	Lines       report.LineStats `json:"lines,omitzero"`
	Unfound     report.Unfound   `json:"unfound,omitzero"`
	Shared      report.Shared    `json:"shared,omitzero"`
	MappedRoles []string         `json:"mapped_roles,omitempty"` // roles of the option Roles that messages have
	// UnknownRoles are those of the first conversation that has such roles and no turn of the assistant.
	UnknownRoles []string       `json:"unknown_roles,omitempty"`
	Bad          report.Rejects `json:"bad,omitzero"`
	Damaged      report.Damaged `json:"damaged,omitzero"`

	// PackRest is how many tokens of the current document came after the first MaxLength, under pack.BFD.
	PackRest int64 `json:"pack_rest,omitempty"`

	Input int `json:"input"` // index of the input that the last document came from
	// bytes of that input, after decompression, up to the end of the document's record
	Offset      int64      `json:"offset"`
	SourceBytes int64      `json:"source_bytes"` // read of the phase's sources, as stored
	Ends        []phaseEnd `json:"ends,omitempty"`

	Sources dataset.BySource `json:"by_source,omitzero"`

	Origins []origins.Writer `json:"origins,omitempty"` // one for each phase that has begun
}

// phaseEnd is how a phase ended.
type phaseEnd struct {
	Stopped     string          `json:"stopped,omitempty"` // the option whose budget ended it, "" where the sources did
	Cut         bool            `json:"cut,omitempty"`
	Position    source.Position `json:"position"`
	Input       int             `json:"input"` // inputs before it were read to their end
	Offset      int64           `json:"offset"`
	SourceBytes int64           `json:"source_bytes"`
}

// decodeCursor returns the cursor of a checkpoint, and the open windows that follow it.
func decodeCursor(data []byte) (c *cursor, windows []byte, err error) {
	data, windows, _ = bytes.Cut(data, []byte{'\n'})
	c = new(cursor)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, nil, fmt.Errorf("read the cursor of the checkpoint: %w", err)
	}
	return c, windows, nil
}
