package survey

import (
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// Unfinished is the format of a folder with an unfinished build.
const Unfinished = "unfinished build of dsload"

// A File is what a file holds.
type File struct {
	URI         string                 `json:"uri"`
	Format      string                 `json:"format,omitempty"` // "" where it is not known
	Compression decompress.Compression `json:"compression,omitempty"`
	// Encoding is what text that is not UTF-8 looks like.
	Encoding string `json:"encoding,omitempty"`
	Bytes    int64  `json:"bytes"`   // stored size, -1 if unknown
	Records  int64  `json:"records"` // those that a build reads, of what was read here; examples of a dataset
	// Sampled is set where only the beginning was read.
	Sampled bool `json:"sampled,omitempty"`
	// Fields are those of the records, in the order in which they were met, 64 at most.
	Fields  []Field `json:"fields,omitempty"`
	Decoded int64   `json:"decoded_records,omitempty"` // those whose fields were counted
	// Text is the field that holds the text, or a|b|c where it is the first of these that a record has.
	Text   string               `json:"text_field,omitempty"`
	Shapes map[chat.Shape]int64 `json:"shapes,omitempty"` // conversations by shape
	// Prompt and Target are templates of pairs, "" for none.
	Prompt string `json:"prompt,omitempty"`
	Target string `json:"target,omitempty"`
	// Bad is how many records a build would end at, or leave out. Problems say what is wrong with the first.
	Bad         int64        `json:"bad,omitempty"`
	Problems    []fault.Text `json:"problems,omitempty"`
	Notes       []fault.Text `json:"notes,omitempty"`
	Members     []Member     `json:"members,omitempty"` // an archive's
	MoreMembers int64        `json:"records_of_more_members,omitempty"`
	Error       fault.Text   `json:"error,omitzero"` // why it cannot be read, or be read on

	group   *group
	err     error    // why it cannot be read
	name    string   // argument that names it
	arg     string   // argument that led to it
	way     way      // how its records are read; "" if nothing in it is text
	choices []string // Text
	alone   bool     // its records are too long for more than one choice
	flags   []string // other flags that it needs
	refused bool     // it is whole, and no build reads it
}

// A Field is a field of the records of a file.
type Field struct {
	Name    string           `json:"name"`
	Records int64            `json:"records"` // records that have a value in it
	Types   map[string]int64 `json:"types"`   // how many of these values have each type
}

// A Member is a file of an archive.
type Member struct {
	Name    string        `json:"name"`
	Format  source.Format `json:"format"`
	Records int64         `json:"records"`
}

// Damaged reports whether a build would end at the file, or leave out some of it.
func (f *File) Damaged() bool { return f.Bad > 0 || !f.Error.IsZero() && !f.refused }
