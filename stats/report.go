package stats

import (
	"encoding/json"

	"github.com/dsload/dsload/shard"
)

// Report describes a dataset.
type Report struct {
	Dataset   string              `json:"dataset"` // its folder, as given
	Tokenizer shard.TokenizerInfo `json:"tokenizer"`
	Settings  json.RawMessage     `json:"settings"`
	Sources   []Source            `json:"sources"`
	Counters  map[string]int64    `json:"counters"`
	Splits    []Split             `json:"splits"`
	Notes     []string            `json:"notes"` // sentences: what was sampled, estimated or is unknown
}

// Source is an input of the build.
type Source struct {
	URI   string `json:"uri"`
	Bytes int64  `json:"bytes"` // -1 if unknown
	// BytesPerToken is nil if the dataset does not know which tokens came from this source.
	BytesPerToken *float64 `json:"bytes_per_token"`
}

// Split describes the rows of a split. Figures that are pointers are nil if unknown, as without the
// tokenizer.
type Split struct {
	Name     string `json:"name"`
	Examples int64  `json:"examples"`
	Tokens   int64  `json:"tokens"`
	// Documents is the number of documents that have rows in the split. In packed rows it counts
	// pieces: a document that was cut between two rows counts as two.
	Documents int64 `json:"documents"`

	Length Summary `json:"length"`
	// Lengths are {tokens, rows}, ascending: exact below exactLengths, above them lower bounds of
	// buckets.
	Lengths   [][2]int64 `json:"lengths"`
	DocLength Summary    `json:"document_length"`
	DocCounts [][2]int64 `json:"document_lengths"` // {tokens, documents}

	Padding     []Padding `json:"padding"`
	PaddingRows int64     `json:"padding_rows"`    // rows of the order that the padding figures are based on
	Sampled     bool      `json:"padding_sampled"` // they are a sample of an epoch, not whole epochs
	Best        Advice    `json:"best"`

	Packing []Packing `json:"packing"`

	// BytesPerToken is the number of UTF-8 bytes of the rows' text per token: as the build counted
	// them, or else as the tokens decode.
	BytesPerToken *float64 `json:"bytes_per_token"`
	Unknown       *int64   `json:"unknown"`       // unknown tokens
	Replaced      *int64   `json:"replaced"`      // U+FFFD in the decoded rows
	ByteFallback  *int64   `json:"byte_fallback"` // tokens for single bytes of characters that the vocabulary lacks
	Duplicates    int64    `json:"duplicates"`    // rows equal to an earlier row of the split
	// ApproximateReplaced and ApproximateDuplicates report whether the figure was estimated from a part of the rows.
	ApproximateReplaced   bool `json:"replaced_approximate,omitempty"`
	ApproximateDuplicates bool `json:"duplicates_approximate,omitempty"`

	TopTokens []TopToken `json:"top_tokens"`
	Samples   []Sample   `json:"samples"`

	// LossTokens counts the tokens that carry loss, LossShare is their share; nil for a mask of a dataset that does not
	// record them.
	LossTokens *int64   `json:"loss_tokens"`
	LossShare  *float64 `json:"loss_share"`
	// Sources is what each source gave, in the order of documents; nil if the dataset does not record it.
	Sources []shard.SourceCounts `json:"sources,omitempty"`
}

// Summary summarizes lengths, in tokens.
type Summary struct {
	Min  int64   `json:"min"`
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P95  int64   `json:"p95"`
	Max  int64   `json:"max"`
}

// Padding is the share of padding in all batches of a size if windows of Bucket rows are sorted by
// length.
type Padding struct {
	BatchSize int     `json:"batch_size"`
	Bucket    int     `json:"bucket"` // 0: not sorted
	Waste     float64 `json:"waste"`  // padding / (rows × longest row), 0 to 1
}

// Advice is the recommended setting for a batch size: the smallest bucket whose waste is within
// nearBest of the least.
type Advice struct {
	BatchSize int     `json:"batch_size"`
	Bucket    int     `json:"bucket"`
	Waste     float64 `json:"waste"`
	Without   float64 `json:"waste_without"` // with bucket 0
}

// Packing is what rows of Length tokens hold if a policy packs the split's rows into them.
type Packing struct {
	Policy  string  `json:"policy"` // "none", "wrapped", "bfd", "bfd_split"; as TRL names them
	Length  int     `json:"length"`
	Fill    float64 `json:"fill"`    // tokens kept / (rows × Length), 0 to 1
	Rows    int64   `json:"rows"`    // number of packed rows
	Dropped int64   `json:"dropped"` // tokens cut off rows longer than Length
}

// TopToken is one of the most frequent tokens.
type TopToken struct {
	ID    uint32  `json:"id"`
	Text  string  `json:"text"` // "" without the tokenizer
	Count int64   `json:"count"`
	Share float64 `json:"share"`
}

// Sample is a row, decoded.
type Sample struct {
	Row      int64   `json:"row"`
	Document int64   `json:"document"`
	Part     int32   `json:"part"`
	Tokens   int     `json:"tokens"` // the whole row's
	Pieces   []Piece `json:"pieces"` // its beginning
}

// Cut reports whether the row continues after its pieces.
func (s Sample) Cut() bool { return s.Tokens > sampleTokens }

// Piece is the text of a token, or of several that form a character together.
type Piece struct {
	IDs  []uint32 `json:"ids"`
	Text string   `json:"text"`
	Loss bool     `json:"loss"` // it carries loss
}
