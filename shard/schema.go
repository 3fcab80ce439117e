package shard

import "github.com/dsload/dsload/internal/shardfile"

// Schema is the columns that rows have; FORMAT.md describes them. input_ids, document and part are
// always present.
type Schema struct {
	VocabSize int  `json:"vocab_size"` // ids are below it; they are uint16 up to 65536, else int32
	Labels    bool `json:"labels"`
	LossMask  bool `json:"loss_mask"`
	Segments  bool `json:"segments"`
}

// IDWidth returns the number of bytes of an id in input_ids and labels: 2 or 4.
func (s Schema) IDWidth() int {
	return shardfile.Shape(s).IDWidth()
}
