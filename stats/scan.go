package stats

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dsload/dsload/shard"
	"github.com/zeebo/xxh3"
)

const (
	windowRows   = 4096    // rows located at once
	maxReadBytes = 1 << 20 // bytes of ids read at once
	// maxCountedIDs bounds the table of counts by id. No known vocabulary is a tenth of it.
	maxCountedIDs = 1 << 22
	indexBits     = 20 // sampleRows is 1 << indexBits
)

// scan is the pass over every row of a split.
type scan struct {
	split  *shard.Split
	schema shard.Schema

	lengths    *lengthCounts // the rows'
	documents  *lengthCounts // the documents', or in packed rows the pieces'
	pieces     *lengthCounts // what packing packs: rows, or the pieces of packed rows
	ids        []int64       // counts by id
	duplicates *duplicateTable

	segments []segment
	sampled  bool
	wanted   []int64 // row << indexBits | index in order, ascending
	order    []int32 // lengths in the order of the segments

	document, documentTokens int64 // the document that the last row belongs to; tokens 0 before the first row

	rows   []int64 // scratch, of a window
	spans  []shard.Span
	others []shard.Span
	hashes []uint64
	docs   []int64
	data   []byte
	pieceN []int32
}

func newScan(split *shard.Split) (*scan, error) {
	schema := split.Schema()
	s := &scan{split: split, schema: schema, lengths: newLengthCounts(), documents: newLengthCounts(),
		ids: make([]int64, min(schema.VocabSize, maxCountedIDs)), duplicates: newDuplicateTable(maxKeys)}
	s.pieces = s.lengths
	if schema.Segments {
		s.pieces = s.documents
	}
	s.segments, s.sampled = chooseSegments(split.NumRows())
	wanted, err := servedRows(split.NumRows(), s.segments)
	if err != nil {
		return nil, err
	}
	for i, row := range wanted {
		wanted[i] = row<<indexBits | int64(i)
	}
	slices.Sort(wanted)
	s.wanted, s.order = wanted, make([]int32, len(wanted))
	return s, nil
}

// run reads every row.
func (s *scan) run(ctx context.Context) error {
	for first := int64(0); first < s.split.NumRows(); first += windowRows {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := s.window(first, int(min(windowRows, s.split.NumRows()-first))); err != nil {
			return err
		}
	}
	if s.documentTokens > 0 {
		s.documents.add(s.documentTokens)
	}
	s.wanted = nil
	return nil
}

// window reads the n rows from first on.
func (s *scan) window(first int64, n int) error {
	s.rows = s.rows[:0]
	for i := range n {
		s.rows = append(s.rows, first+int64(i))
	}
	s.spans, s.others = slices.Grow(s.spans[:0], n)[:n], slices.Grow(s.others[:0], n)[:n]
	s.hashes = slices.Grow(s.hashes[:0], n)[:n]
	if err := s.split.Locate(s.spans, s.rows); err != nil {
		return err
	}
	for i, span := range s.spans {
		s.lengths.add(int64(span.Len))
		for len(s.wanted) > 0 && s.wanted[0]>>indexBits == first+int64(i) {
			s.order[s.wanted[0]&(1<<indexBits-1)] = span.Len
			s.wanted = s.wanted[1:]
		}
	}
	if err := s.countDocuments(first, n); err != nil {
		return err
	}
	if err := s.readIDs(s.spans, 0, s.count); err != nil {
		return fmt.Errorf("split %s, rows %d to %d: %w", s.split.Info().Name, first, first+int64(n)-1, err)
	}
	if s.schema.Labels {
		if err := s.split.LocateColumn(shard.ColumnLabels, s.others, s.rows); err != nil {
			return err
		}
		if err := s.readIDs(s.others, 1, nil); err != nil {
			return err
		}
	}
	for _, h := range s.hashes {
		s.duplicates.add(h)
	}
	return nil
}

// countDocuments counts the documents of a window's rows: consecutive rows with the same number.
func (s *scan) countDocuments(first int64, n int) error {
	if s.schema.Segments {
		return s.countPieces(n)
	}
	s.docs = slices.Grow(s.docs[:0], n)[:n]
	if err := s.split.Documents(s.docs, first); err != nil {
		return err
	}
	for i, d := range s.docs {
		if d != s.document && s.documentTokens > 0 {
			s.documents.add(s.documentTokens)
			s.documentTokens = 0
		}
		s.document = d
		s.documentTokens += int64(s.spans[i].Len)
	}
	return nil
}

func (s *scan) countPieces(n int) (err error) {
	if err := s.split.LocateColumn(shard.ColumnSegments, s.others, s.rows); err != nil {
		return err
	}
	for i := range n {
		s.pieceN, err = s.split.AppendSegments(s.pieceN[:0], s.others[i:i+1], s.spans[i:i+1])
		if err != nil {
			return err
		}
		for _, k := range s.pieceN {
			s.documents.add(int64(k))
		}
	}
	return nil
}

// readIDs reads the ids of spans, hashes each row's into s.hashes, and passes all of them to count
// unless it is nil. The hash of a second column is mixed with that of the first.
func (s *scan) readIDs(spans []shard.Span, column uint64, count func(ids []byte) error) (err error) {
	long, hashed := xxh3.New(), 0 // what was hashed of a row in pieces
	s.data, err = s.split.EachIDs(s.data, spans, maxReadBytes, func(i int, ids []byte) error {
		if count != nil {
			if err := count(ids); err != nil {
				return err
			}
		}
		h, size := uint64(0), int(spans[i].Len)*s.split.IDWidth()
		if len(ids) == size {
			h = xxh3.Hash(ids)
		} else {
			_, _ = long.Write(ids) // writing to a hash never fails
			if hashed += len(ids); hashed < size {
				return nil
			}
			h, hashed = long.Sum64(), 0
			long.Reset()
		}
		if column > 0 {
			h = xxh3.HashSeed(binary.LittleEndian.AppendUint64(nil, h), s.hashes[i])
		}
		s.hashes[i] = h
		return nil
	})
	return err
}

// count counts ids.
func (s *scan) count(data []byte) error {
	vocab := uint32(s.schema.VocabSize)
	if s.split.IDWidth() == 2 {
		for at := 0; at+2 <= len(data); at += 2 {
			id := binary.LittleEndian.Uint16(data[at:])
			if int(id) >= len(s.ids) {
				return fmt.Errorf("id %d in a vocabulary of %d ids: %w", id, vocab, shard.ErrCorrupt)
			}
			s.ids[id]++
		}
		return nil
	}
	for at := 0; at+4 <= len(data); at += 4 {
		id := binary.LittleEndian.Uint32(data[at:])
		switch {
		case id >= vocab:
			return fmt.Errorf("id %d in a vocabulary of %d ids: %w", id, vocab, shard.ErrCorrupt)
		case int(id) < len(s.ids):
			s.ids[id]++
		}
	}
	return nil
}
