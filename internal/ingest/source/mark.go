package source

import (
	"strings"
	"time"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// A Mark is a place between two documents of a set: where one partition of a build ends and the
// next begins.
type Mark struct {
	Input   int    `json:"input"`
	Offset  int64  `json:"offset,omitempty"` // 0 for the beginning of the input
	Row     int64  `json:"row,omitempty"`
	Ordinal int64  `json:"ordinal"` // number of the next document of the set
	State   uint32 `json:"state,omitempty"`
}

// A Listed is an input as a plan lists it: all that Open would find out by looking at it.
type Listed struct {
	URI         string                 `json:"uri"`
	Bytes       int64                  `json:"bytes"` // stored ones
	Format      Format                 `json:"format"`
	Compression decompress.Compression `json:"compression,omitempty"`
	Window      int64                  `json:"window,omitempty"`
	TextBytes   int64                  `json:"text_bytes"` // estimated
	Archive     Format                 `json:"archive,omitempty"`
	Records     string                 `json:"records,omitempty"` // where the records of JSON lie, if not at the top

	// ETag, Modified, Revision and Hash are set for a remote file, as in listing.File.
	ETag     string    `json:"etag,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	Revision string    `json:"revision,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	// Sum is over the input's text, Tail over the end of a file of columns; zero where they are not known.
	Sum  checksum.Sum `json:"sum,omitzero"`
	Tail checksum.Sum `json:"tail,omitzero"`
}

// Cuttable reports whether a partition may begin inside the input: its records can be read from any
// offset.
func (l *Listed) Cuttable() bool {
	if strings.HasPrefix(l.URI, "synth://") {
		return true
	}
	return l.Format.layout().cuts && l.Compression == decompress.Plain && l.Archive == ""
}

// TextAt estimates how much of the input's text lies before an offset of a Mark.
func (l *Listed) TextAt(offset int64) float64 {
	if l.Format.isColumnar() && l.Bytes > 0 {
		return float64(l.TextBytes) * min(1, float64(offset)/float64(l.Bytes))
	}
	return min(float64(offset), float64(l.TextBytes))
}

// OffsetOf is the inverse of TextAt: the offset after so much text.
func (l *Listed) OffsetOf(text float64) int64 {
	if l.Format.isColumnar() && l.TextBytes > 0 {
		return int64(text / float64(l.TextBytes) * float64(l.Bytes))
	}
	return int64(text)
}

// A Range is the part of a set that one partition reads: some inputs, the first from From on, the
// last up to To.
type Range struct {
	// Inputs are those of the range, each with the checksum of what the range has of it, if known.
	Inputs []Listed
	// From is where the first input begins, with Input 0.
	From Mark
	// To is where the last input ends; Offset is 0 where all of it is read.
	To Mark
}

// A Span is a stretch of an input with its checksum.
type Span struct {
	Input    int
	From, To int64
	Sum      checksum.Sum
}

// spans notes the checksums of what lies between marks and the borders of inputs.
type spans struct {
	on   bool
	from int64 // in the open input
	list []Span
}
