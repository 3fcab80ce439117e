package report

import (
	"encoding/json"
	"fmt"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/internal/units"
)

const (
	// MaxRejects is how many lines rejects.jsonl may have, and of how many files with bad records all are counted.
	MaxRejects = 100
	// maxRejectsTold is how many of them are notes, too.
	maxRejectsTold = 8
)

// A Reject is a line of rejects.jsonl: the bad records of a source for one reason.
type Reject struct {
	Source string `json:"source"`
	// of the first of them
	Row     int64  `json:"row"`              // counted by the format: lines, records after the header, documents
	Offset  int64  `json:"offset"`           // the record's first byte, after decompression
	Member  string `json:"member,omitempty"` // the file of an archive that it lies in
	Reason  string `json:"reason"`
	Records int64  `json:"records"`
	// WholeFile reports that every record of the source is a bad one.
	WholeFile bool `json:"whole_file,omitempty"`
}

// FileRecords counts the records of a source that were looked at, and the bad ones.
type FileRecords struct {
	Phase   int    `json:"phase"`
	Input   int    `json:"input"`
	Source  string `json:"source"`
	Records int64  `json:"records"`
	Bad     int64  `json:"bad"`
}

// Rejects are the bad records that a build left out.
type Rejects struct {
	List []Reject `json:"list,omitempty"`
	// Files has those with bad records, and the first and the last one, of which other parts of a build may have
	// read more.
	Files []FileRecords `json:"files,omitempty"`
	kinds []string      // the kinds in List
	// The last reason and its kind: the next record is often bad for the same one.
	reason, kind string
}

// Reads notes that an input is read. uri is its name.
func (r *Rejects) Reads(phase, input int, uri func() string) *FileRecords {
	n := len(r.Files)
	if n > 0 && r.Files[n-1].Phase == phase && r.Files[n-1].Input == input {
		return &r.Files[n-1]
	}
	if n > 1 && r.Files[n-1].Bad == 0 || n > MaxRejects {
		r.Files = r.Files[:n-1]
	}
	r.Files = append(r.Files, FileRecords{Phase: phase, Input: input, Source: uri()})
	return &r.Files[len(r.Files)-1]
}

// variable matches what differs between the reasons of records that are bad for the same one.
var variable = lazy.Regexp(`\d+|"[^"]*"|\b(the record has|the columns are|fields are) [^;]*`)

// Add adds bad records of a source to those with the same reason.
func (r *Rejects) Add(one Reject) {
	for _, have := range r.List[len(r.kinds):] {
		r.kinds = append(r.kinds, variable().ReplaceAllString(have.Reason, "…"))
	}
	if one.Reason != r.reason {
		r.reason, r.kind = one.Reason, variable().ReplaceAllString(one.Reason, "…")
	}
	for i := range r.List {
		if r.List[i].Source == one.Source && r.kinds[i] == r.kind {
			r.List[i].Records += one.Records
			return
		}
	}
	if len(r.List) < MaxRejects {
		r.List, r.kinds = append(r.List, one), append(r.kinds, r.kind)
	}
}

// Merge adds what the next part of a build left out.
func (r *Rejects) Merge(next *Rejects) {
	for _, one := range next.List {
		r.Add(one)
	}
	for _, file := range next.Files {
		f := r.Reads(file.Phase, file.Input, func() string { return file.Source })
		f.Records, f.Bad = f.Records+file.Records, f.Bad+file.Bad
	}
}

// Lines is the content of rejects.jsonl.
func (r *Rejects) Lines() (out []byte, err error) {
	for _, one := range r.List {
		_, one.WholeFile = r.wholeFile(one.Source)
		line, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// wholeFile returns how many records of a source were looked at, if all of them are bad ones.
func (r *Rejects) wholeFile(source string) (records int64, whole bool) {
	var bad int64
	for _, f := range r.Files {
		if f.Source == source {
			records, bad = records+f.Records, bad+f.Bad
		}
	}
	return records, records > 0 && bad == records
}

// Notes returns a sentence for each source and reason, as far as they are few.
func (r *Rejects) Notes() (notes []fault.Text) {
	for i, one := range r.List {
		if i == maxRejectsTold && i < len(r.List)-1 {
			return append(notes, fault.Textf("more reasons to leave out bad records are in rejects.jsonl: %d", len(r.List)-i))
		}
		what := fmt.Sprintf("%s of %s left out", units.Plural(one.Records, "bad record"), uris.Shown(one.Source))
		if n, whole := r.wholeFile(one.Source); whole {
			what = fmt.Sprintf("%s of %s, of which every record is a bad one, left out",
				units.Plural(one.Records, "record"), uris.Shown(one.Source))
			if n == one.Records {
				what = fmt.Sprintf("nothing of %s is in the dataset: all of its records are bad ones, %s",
					uris.Shown(one.Source), units.Count(n))
			}
		}
		notes = append(notes, fault.Plain(what+": "+one.Reason))
	}
	return notes
}
