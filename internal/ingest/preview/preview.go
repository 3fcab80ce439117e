// Package preview has what is shown of a build that is not run: how the first documents of each input are read, cut
// and tokenized, and an estimate of the whole.
//
//	inputs of a set -> Choose -> Recorder (one document after another) -> Preview
//
// It knows nothing of the stages: package ingest takes documents through them and tells a Recorder of each. A
// Recorder belongs to one goroutine.
package preview

import (
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/tokenize"
)

// A Preview is how a build would begin.
type Preview struct {
	Inputs []Input `json:"inputs"`
	// MoreInputs is the number of inputs that were not looked at, and More has the names of the first.
	MoreInputs int               `json:"more_inputs,omitempty"`
	More       []string          `json:"more,omitempty"`
	Notes      []fault.Text      `json:"notes,omitempty"`
	Memory     *setup.MemoryPlan `json:"memory"`
	Estimate   Estimate          `json:"estimate"`

	Tokenizer *tokenize.Tokenizer `json:"-"`
	Options   option.Options      `json:"-"` // with their defaults
}

// An Input is an input with its first documents.
type Input struct {
	URI         string                 `json:"uri"`
	Val         bool                   `json:"val,omitempty"` // a source of the split val
	Format      source.Format          `json:"format"`
	Compression decompress.Compression `json:"compression,omitempty"`
	Bytes       int64                  `json:"bytes"` // on disk, -1 if unknown
	Documents   []Document             `json:"documents"`
	Ended       bool                   `json:"ended,omitempty"` // it has no more documents
	Error       fault.Text             `json:"error,omitzero"`  // why it ends the build
}

// A Document is how a document would be cut and tokenized, or why it would be left out.
type Document struct {
	Record int64 `json:"record"` // number as in messages: the line, the record, or the document of the input
	// Unread is how many records from this one on are left out unread, 0 for a record that was read.
	Unread int64  `json:"unread,omitempty"`
	Member string `json:"member,omitempty"`
	Shape  string `json:"shape,omitempty"` // a conversation's
	Split  string `json:"split,omitempty"` // "" if it is left out
	// LeftOut is why no example is made of it; zero otherwise. Text is then its beginning.
	LeftOut     fault.Text `json:"left_out,omitzero"`
	Text        string     `json:"text,omitempty"`
	Bytes       int64      `json:"text_bytes"`
	Replaced    int64      `json:"replaced,omitempty"` // ill-formed sequences
	Tokens      int64      `json:"tokens"`             // all of its examples'
	NumExamples int        `json:"num_examples"`
	Examples    []Example  `json:"examples,omitempty"` // the first of them
	Cut         bool       `json:"cut,omitempty"`      // longer than an example may be, and its rest is left out
	Partial     bool       `json:"partial,omitempty"`
}

// An Example is an example as it would be written, or packed into a row.
type Example struct {
	InputIDs []uint32 `json:"input_ids"`
	Labels   []uint32 `json:"labels,omitempty"`    // ids of the target
	LossMask []bool   `json:"loss_mask,omitempty"` // nil where every token is trained on
}
