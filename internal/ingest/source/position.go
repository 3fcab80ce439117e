package source

import (
	"time"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// A Position lies between two records, or between two pieces of one. It is plain data for a
// checkpoint: JSON brings it back unchanged. The zero Position is the beginning.
type Position struct {
	Input   int          `json:"input"`            // index of the input that is read
	Offset  int64        `json:"offset"`           // bytes of it, after decompression, before the next record
	Row     int64        `json:"row"`              // rows of it that are complete
	Ordinal int64        `json:"ordinal"`          // of the next document, or of the unfinished one
	Inside  bool         `json:"inside,omitempty"` // the next record is a further piece of a document
	State   uint32       `json:"state,omitempty"`  // the framer's own
	Sum     checksum.Sum `json:"sum"`              // over the Offset bytes before
	Base    checksum.Sum `json:"base,omitzero"`    // of a file of columns: over the groups of rows before the current one
	Group   int          `json:"group,omitempty"`  // of a file of columns: the number of the current group, from 1 on
	// of a file of columns in whose middle a range begins: of the groups before the current one
	Groups []checksum.Sum `json:"groups,omitempty"`
	// of a remote input that can be resumed in place
	Sums *sumState `json:"sums,omitempty"`

	// Known is every input as it was at first sight, or every folder and glob of a large set; Done
	// has what the finished ones held, and List how far the current list was read. All are
	// shared and must not be changed.
	Known []Stat     `json:"known,omitempty"`
	Done  []Finished `json:"done,omitempty"`
	List  *List      `json:"list,omitempty"`

	Trailing *Trailing `json:"trailing,omitempty"` // shared
	Members  *Members  `json:"members,omitempty"`  // shared
}

// Finished describes an input, or a list of files, that was read to its end.
type Finished struct {
	Bytes int64        `json:"bytes"`         // after decompression
	Sum   checksum.Sum `json:"sum,omitzero"`  // over an input's bytes; zero for generated text
	Seen  checksum.Sum `json:"seen,omitzero"` // of a list: over names, sizes and times of its files
	// of a list: the SHA-256 over the checksums and names of its files, in hexadecimal
	List string `json:"list,omitempty"`
	// of a file of columns in whose middle a range begins: the checksums of the groups that it has
	Groups []checksum.Sum `json:"groups,omitempty"`
}

// List is how far a list of files was read.
type List struct {
	Bytes int64        `json:"bytes"` // of its finished files, after decompression
	Seen  checksum.Sum `json:"seen"`  // over their names, sizes and times
	State []byte       `json:"state"` // of the SHA-256 over their checksums and names
}

// Trailing describes bytes after compressed data that were ignored.
type Trailing struct {
	Inputs int64  `json:"inputs"` // that have such bytes
	URI    string `json:"uri"`    // the first of them
	Offset int64  `json:"offset"` // where they begin in it
	Bytes  int64  `json:"bytes"`  // how many it has
}

// Stat identifies an input, or a list of files, without reading it.
type Stat struct {
	URI     string    `json:"uri"`
	Size    int64     `json:"size"`           // bytes on disk, of a list of all its files; -1 if unknown
	ModTime time.Time `json:"mtime,omitzero"` // of a list the latest
	ETag    string    `json:"etag,omitempty"` // of a remote file, where its server gives one
	// of the repository that a remote file, or a list of them, lies in: a commit
	Revision string       `json:"revision,omitempty"`
	Files    int64        `json:"files,omitempty"`  // of a list; 0 for a single input
	Names    checksum.Sum `json:"names,omitzero"`   // of a list: over its files' names in order
	Seen     checksum.Sum `json:"seen,omitzero"`    // of a list: over its files' names, sizes and times in order
	Format   Format       `json:"format,omitempty"` // of a single input: what it was read as
	// of a list, and of an archive, whose files have formats of their own: the rules that found them
	Detection int `json:"detection,omitempty"`
}

// A Record is one document, or one piece of one: what its framer found out about it, and where it lies. Its
// bytes were appended to the buffer given to Next. Err is a *RecordError where the record is bad.
type Record struct {
	frame.Record
	// Input is the index of its input.
	Input int
	// Row counts from 1: the line for text and jsonl, the record after the header for csv, else the
	// document of the input.
	Row int64
	// Ordinal is that of its document in the whole set, counted from 0.
	Ordinal int64
	// Rows is how many rows it stands for: 1, or for a bad record the number of rows lost, which may be 0, or
	// the number of Skipped ones.
	Rows int64
	// Nulls is how many members of structs in a conversation of columns were left out: null, since one schema
	// gives a row the fields of all.
	Nulls int
	// Decided has a bit for each of Options.Conditions that holds since the input's folders say so.
	Decided uint64
	// Skipped is set on what stands for a group of rows of which none meets Options.Conditions: documents
	// that were not read, the first of which has the Ordinal.
	Skipped bool
	// Format is how it was framed.
	Format Format
	// Member is the file of an archive that it lies in.
	Member string
}
