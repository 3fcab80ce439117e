package dataset

import (
	"encoding/binary"
	"fmt"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// Rows are rows without labels and segments, of consecutive whole documents. The Builder copies what it appends.
type Rows struct {
	IDs       []byte  // as AppendIDs makes them, back to back
	Lengths   []int32 // the tokens of each row
	Parts     []int32 // the chunk of its document that each is; 0 begins the next document
	LossMask  []bool  // of all rows, back to back; only if Schema.LossMask
	Tokens    int64   // of all rows
	Loss      int64   // those of Tokens that carry loss
	Document  int64   // of the first row
	Documents int64
}

// fits returns an error if the rows do not fit the schema, if one is too long, or if they are in another order.
func (r *Rows) fits(s shard.Schema, maxTokens int) error {
	var tokens, documents int64
	for i, n := range r.Lengths {
		if n < 1 || int(n) > maxTokens {
			return fmt.Errorf("row of %d tokens: %w: the limit is %d", n, shard.ErrTooLarge, maxTokens)
		}
		if r.Parts[i] == 0 {
			documents++
		} else if i == 0 || r.Parts[i] != r.Parts[i-1]+1 {
			return fmt.Errorf("%w: part %d of a document", ErrOrder, r.Parts[i])
		}
		tokens += int64(n)
	}
	switch {
	case s.Labels || s.Segments || s.LossMask != (r.LossMask != nil), s.LossMask && int64(len(r.LossMask)) != tokens:
		return fmt.Errorf("%w: labels, segments, or loss_mask of rows of input_ids", shard.ErrSchema)
	case tokens != r.Tokens || documents != r.Documents || int64(len(r.IDs)) != tokens*int64(s.IDWidth()):
		return fmt.Errorf("%w: %d bytes of input_ids for %d tokens of %d documents", shard.ErrSchema, len(r.IDs), tokens, documents)
	case r.Document < 0:
		return fmt.Errorf("%w: document %d", shard.ErrRange, r.Document)
	}
	return nil
}

// Rows is Row for many.
func (b *Builder) Rows(split string, r *Rows) error {
	s, err := b.split(split)
	if err != nil {
		return err
	}
	if err := r.fits(b.opts.Schema, b.opts.MaxRowTokens); err != nil {
		return err
	}
	if r.Document <= s.document {
		return fmt.Errorf("%w: document %d after document %d", ErrOrder, r.Document, s.document)
	}
	s.prepare(b.layout)
	rest := *r
	for rest.Document--; ; {
		if s.pending.addRows(b.layout, &rest, b.opts.batchBytes()); len(rest.Lengths) == 0 {
			break
		}
		if err := b.closeBatch(s); err != nil {
			return err
		}
	}
	for _, n := range r.Lengths {
		s.stats.Add(int(n), 0)
	}
	s.document, s.part = r.Document+r.Documents-1, r.Parts[len(r.Parts)-1]
	return nil
}

// addRows moves the first of rows that fit the schema to the batch, up to its size. Document is the one before them.
func (b *batch) addRows(l *shardfile.Layout, r *Rows, batchBytes int64) {
	masked := l.ColIndex[shardfile.ColLossMask]
	n, tokens := b.fit(l, r.Lengths, masked >= 0, batchBytes)
	ids, size := &b.cols[0], tokens*l.Schema.IDWidth()
	at, from := len(ids.values), len(ids.offsets)
	ids.values = grow(ids.values, size)
	copy(ids.values[at:], r.IDs)
	for _, length := range r.Lengths[:n] {
		ids.endList(int(length))
	}
	if masked >= 0 {
		c := &b.cols[masked]
		c.addBits(r.LossMask[:tokens])
		c.n += int64(tokens)
		c.offsets = append(c.offsets, ids.offsets[from:]...) // those of the mask are the same
		r.LossMask = r.LossMask[tokens:]
	}
	doc, part := &b.cols[l.ColIndex[shardfile.ColDocument]], &b.cols[l.ColIndex[shardfile.ColPart]]
	for _, p := range r.Parts[:n] {
		if p == 0 {
			r.Document++
		}
		doc.values = binary.LittleEndian.AppendUint64(doc.values, uint64(r.Document))
		part.values = binary.LittleEndian.AppendUint32(part.values, uint32(p))
	}
	doc.n += int64(n)
	part.n += int64(n)
	r.IDs, r.Lengths, r.Parts = r.IDs[size:], r.Lengths[n:], r.Parts[n:]
}

// fit counts the first of some rows that the batch has room for, and returns how many they are and their tokens.
func (b *batch) fit(l *shardfile.Layout, lengths []int32, masked bool, batchBytes int64) (n, tokens int) {
	width := l.Schema.IDWidth()
	for ; n < len(lengths) && b.rows < shardfile.MaxBatchRows; n++ {
		length := int(lengths[n])
		size := int64(length*width) + rowOverhead
		if masked {
			size += int64(length+7) / 8
		}
		if b.rows > 0 && b.bytes+size > batchBytes {
			break
		}
		tokens += length
		b.bytes += size
		b.rows++
	}
	return n, tokens
}
