package tokenize

import (
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pipeline"
)

// Offset is where a token lies in its text, in bytes: text[Start:End]. A character that a
// normalizer or a pre-tokenizer inserted has the offsets of its neighbour in the text.
type Offset struct{ Start, End int }

// AppendTokensOffsets appends the ids of a text to ids, as Encoder.AppendTokens does, and the
// position of each in the text to the second slice. The offsets are those of Hugging Face's
// library, in bytes. It is much slower than an Encoder, and the first call reads the tokenizer's
// file again. It is safe for concurrent use.
//
// Errors wrap ErrUnsupported for a SentencePiece .model and for tokenizers without a file, and
// ErrFormat if the file has changed since it was loaded.
func (t *Tokenizer) AppendTokensOffsets(ids []uint32, to []Offset, text []byte) ([]uint32, []Offset, error) {
	offsets, err := t.offsets()
	var origins []normalize.Origin
	if err == nil {
		ids, origins, err = offsets.Append(ids, nil, text)
	}
	if err != nil {
		return ids, to, fmt.Errorf("offsets of %s: %w", t.name, err)
	}
	for _, o := range origins {
		to = append(to, Offset(o))
	}
	return ids, to, nil
}

func (t *Tokenizer) newOffsets() (*pipeline.Offsets, error) {
	if t.source.spec != nil { // ranks: their tables are kept anyway
		return pipeline.NewOffsets(t.source.spec, t.pipeline)
	}
	data, err := t.readFile()
	if err != nil {
		return nil, err
	}
	s, err := readSpec(data, t.source.options, nil, nil)
	if err != nil {
		return nil, err
	}
	return pipeline.NewOffsets(s, t.pipeline)
}
