package ingest

import (
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/tokenize"
)

// A Previewed is how a build would begin.
type Previewed struct {
	Inputs []PreviewInput `json:"inputs"`
	// MoreInputs counts those that were not looked at.
	MoreInputs int               `json:"more_inputs,omitempty"`
	Notes      []fault.Text      `json:"notes,omitempty"`
	Memory     *setup.MemoryPlan `json:"memory"`
	Estimate   Estimate          `json:"estimate"`

	Tokenizer *tokenize.Tokenizer `json:"-"`
	Options   option.Options      `json:"-"` // with their defaults
}

// A PreviewInput is an input with its first documents.
type PreviewInput struct {
	URI         string                 `json:"uri"`
	Val         bool                   `json:"val,omitempty"` // a source of the split val
	Format      source.Format          `json:"format"`
	Compression decompress.Compression `json:"compression,omitempty"`
	Bytes       int64                  `json:"bytes"` // on disk, -1 if unknown
	Documents   []PreviewDocument      `json:"documents"`
	Ended       bool                   `json:"ended,omitempty"` // it has no more documents
}

// A PreviewDocument is how a document would be cut and tokenized, or why it would be left out.
type PreviewDocument struct {
	Record int64 `json:"record"` // as in messages: the line, the record, or the document of the input
	// Unread is how many records from this one on are left out unread, 0 for a record that was read.
	Unread int64  `json:"unread,omitempty"`
	Member string `json:"member,omitempty"`
	Shape  string `json:"shape,omitempty"` // of a conversation
	Split  string `json:"split,omitempty"` // "" if it is left out
	// LeftOut is why no example is made of it; zero otherwise. Text is then its beginning.
	LeftOut     fault.Text       `json:"left_out,omitzero"`
	Text        string           `json:"text,omitempty"`
	Bytes       int64            `json:"text_bytes"`
	Replaced    int64            `json:"replaced,omitempty"` // ill-formed sequences
	Tokens      int64            `json:"tokens"`             // of its examples
	NumExamples int              `json:"num_examples"`
	Examples    []PreviewExample `json:"examples,omitempty"` // the first of them
	Cut         bool             `json:"cut,omitempty"`      // longer than an example may be, and its rest is left out
	Partial     bool             `json:"partial,omitempty"`
}

// A PreviewExample is an example as it would be written, or packed into a row.
type PreviewExample struct {
	InputIDs []uint32 `json:"input_ids"`
	Labels   []uint32 `json:"labels,omitempty"`    // ids of the target
	LossMask []bool   `json:"loss_mask,omitempty"` // nil where every token is trained on
}
