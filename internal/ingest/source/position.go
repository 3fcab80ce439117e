package source

import (
	"cmp"
	"time"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/skip"
)

// A Position lies between two records, or between two pieces of one. It is plain data for a
// checkpoint: JSON brings it back unchanged. The zero Position is the beginning.
type Position struct {
	Input   int          `json:"input"`            // index of the input that is read
	Offset  int64        `json:"offset"`           // bytes of it, after decompression, before the next record
	Row     int64        `json:"row"`              // rows of it that are complete
	Ordinal int64        `json:"ordinal"`          // number of the next document, or of the unfinished one
	Inside  bool         `json:"inside,omitempty"` // the next record is a further piece of a document
	State   uint32       `json:"state,omitempty"`  // the framer's own
	Sum     checksum.Sum `json:"sum"`              // over the Offset bytes before

	// Base, Group and Groups are set in a file of columns. Base is over the groups of rows before the current
	// one, Group the current one's number from 1 on. Groups are the checksums of those before it, where a range
	// begins in the middle of the file.
	Base   checksum.Sum   `json:"base,omitzero"`
	Group  int            `json:"group,omitempty"`
	Groups []checksum.Sum `json:"groups,omitempty"`
	// Sums is set in a remote input that can be resumed in place.
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
	Bytes int64 `json:"bytes"` // after decompression
	// Sum is over an input's bytes, zero for generated text.
	Sum checksum.Sum `json:"sum,omitzero"`
	// Seen and List describe a list: Seen is over names, sizes and times of its files, List the SHA-256 over
	// their checksums and names, in hexadecimal.
	Seen checksum.Sum `json:"seen,omitzero"`
	List string       `json:"list,omitempty"`
	// Groups are the checksums of the groups of a file of columns in whose middle a range begins.
	Groups []checksum.Sum `json:"groups,omitempty"`
}

// List is how far a list of files was read.
type List struct {
	Bytes int64        `json:"bytes"` // what its finished files hold after decompression
	Seen  checksum.Sum `json:"seen"`  // over their names, sizes and times
	State []byte       `json:"state"` // the SHA-256 over their checksums and names
}

// Trailing describes bytes after compressed data that were ignored.
type Trailing struct {
	Inputs int64  `json:"inputs"` // how many have such bytes
	URI    string `json:"uri"`    // the first of them
	Offset int64  `json:"offset"` // where they begin in it
	Bytes  int64  `json:"bytes"`  // how many it has
}

// Stat identifies an input, or a list of files, without reading it.
type Stat struct {
	URI     string    `json:"uri"`
	Size    int64     `json:"size"`           // bytes on disk, for a list those of all its files; -1 if unknown
	ModTime time.Time `json:"mtime,omitzero"` // for a list the latest
	// ETag is what the server of a remote file gives, Revision the commit of the repository that a remote file,
	// or a list of them, lies in.
	ETag     string `json:"etag,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Files, Names and Seen describe a list, and are zero for a single input. Names is over the names of its
	// files, Seen over names, sizes and times, in order.
	Files int64        `json:"files,omitempty"`
	Names checksum.Sum `json:"names,omitzero"`
	Seen  checksum.Sum `json:"seen,omitzero"`
	// Format is what a single input was read as.
	Format Format `json:"format,omitempty"`
	// Detection is the number of the rules that found the formats of the files of a list or an archive.
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

// sumState is the state of an input's checksum in a Position.
type sumState struct {
	XXH3 []byte `json:"xxh3"`
	// Check is the state of the hash that the server announced, over the first CheckAt bytes. It may be ahead.
	Check   []byte `json:"check,omitempty"`
	CheckAt int64  `json:"check_at,omitempty"`
	// ETag, Modified and Revision identify the version that was read.
	ETag     string    `json:"etag,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	Revision string    `json:"revision,omitempty"`
}

// Members counts the members of archives that were skipped.
type Members struct {
	Count int64  `json:"count"`
	Text  string `json:"text"`           // what was skipped of the first archive that has such members
	URI   string `json:"uri"`            // the first archive
	More  int64  `json:"more,omitempty"` // further archives
}

// note adds what an archive's members were skipped for.
func (m *Members) note(uri string, skipped *skip.Counts) *Members {
	n := skipped.Total()
	if n == 0 {
		return m
	}
	return m.plus(&Members{Count: n, Text: skipped.Text(false), URI: uri})
}

// plus adds those of later archives. Either may be nil.
func (m *Members) plus(later *Members) *Members {
	if m == nil || later == nil {
		return cmp.Or(m, later)
	}
	sum := *m
	sum.Count, sum.More = sum.Count+later.Count, sum.More+1+later.More
	return &sum
}
