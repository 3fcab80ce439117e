package feed

import (
	"context"
	"sync/atomic"

	"github.com/dsload/dsload/internal/serve/collate"
)

// Backend is what a server serves: datasets that can be read as batches. It must be safe for
// concurrent use.
//
// It is an interface because feed must not import shard: the server speaks the protocol, serve.Reader
// knows the datasets.
type Backend interface {
	// Open plans the stream that q asks for. It reads no rows and holds no memory that grows with
	// the query. A query that the datasets cannot answer is a *RequestError.
	Open(q Query) (*Opening, error)
	// Dataset describes the dataset of that name as JSON; "" is the only one, or all of them. The
	// answer is the concatenation of the parts, which all callers share and must not change. An
	// unknown name is a *RequestError.
	Dataset(name string) ([][]byte, error)
	// About describes the datasets for people. The caller owns the answer.
	About() []About
	// Seal identifies the content that is served, in hexadecimal. It never changes; every response
	// carries it.
	Seal() string
	// Check returns an error if the data cannot be read any more or are not those that were opened.
	Check() error
}

// Opening is a stream before its first batch: its shape and its maximum memory.
type Opening struct {
	Collate collate.Options
	Mixed   bool // batches have the column dataset
	Sources bool // batches have the columns dataset and source
	// Counted are the counters of batches, which all streams share; Asked is the share of rows that each dataset of a
	// mix is to have.
	Counted     []*Counted
	Asked       map[string]float64
	BatchRows   int               // most rows of a batch
	BatchTokens int64             // most tokens of a batch before padding, without labels
	WindowBytes int64             // what Stream itself holds while it runs
	Searched    bool              // a batch's rows are found among many others, or far away, which takes time
	Metadata    map[string]string // key and value pairs for the schema
	Stream      Stream
	// LeftOut returns how many rows of an epoch the stream has left out, as far as it is known, and how
	// many the epoch has, 0 if that is unknown. It is called after Next, by its goroutine. nil is none.
	LeftOut func() (rows, of int64)
	Dropped int64 // tokens of an epoch, at least, that packing drops from rows that are too long
}

// Stream yields batches. It belongs to one goroutine.
type Stream interface {
	// Next fills b, which is empty and configured as the Plan says, and seals it. It returns io.EOF
	// after the last batch.
	Next(ctx context.Context, b *collate.Batch) error
	// Close releases what the stream holds.
	Close()
}

// About describes a dataset for people.
type About struct {
	Name      string       `json:"name"`
	Tokenizer string       `json:"tokenizer"`
	MaxLength int          `json:"max_length"` // at which rows were cut; 0 if unknown
	Splits    []AboutSplit `json:"splits"`
}

// AboutSplit is a split of a dataset.
type AboutSplit struct {
	Name    string `json:"name"`
	Rows    int64  `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Longest int64  `json:"longest"` // row, in tokens
	// Lengths is the histogram of rows by length: first and last length of a bucket, number of
	// rows.
	Lengths [][3]int64 `json:"-"`
	Sources []*Counted `json:"-"` // at least one
}

// Counted is what a server has sent of a source of a split.
type Counted struct {
	Dataset, Split string
	Source         string // "" if rows do not tell theirs
	Size           int64  // its rows
	Rows, Tokens   atomic.Int64
}
