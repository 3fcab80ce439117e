package export

import (
	"context"

	"github.com/dsload/dsload/shard"
)

const (
	windowRows = 1024
	// pieceBytes is the maximum size of a document's ids in memory while reading.
	pieceBytes = 256 << 10
)

// rowExtras are the other columns of a row, empty if the dataset lacks them.
type rowExtras struct {
	labels []byte // a target's ids as on disk, or what the mask leaves of the row's own, of 4 bytes
	mask   []bool
}

// sink receives the documents of a split in order: begin, the ids in any number of pieces, end; and
// finish at the end. Slices are valid only during the call.
type sink interface {
	begin(document int64) error
	ids(raw []byte, extras *rowExtras) error
	end() error
	finish() error
	discard() // removes unfinished files; does nothing after finish
}

// documents passes every row of a split to the sinks.
type documents struct {
	ctx   context.Context
	split *shard.Split
	sinks []sink
	done  func(rows int64)

	open    bool
	current int64
	numbers []int64
	rows    []int64
	spans   []shard.Span
	buf     []byte
	row     shard.Row
	labels  []byte // the row's, where a mask makes them
}

func (d *documents) run() error {
	total := d.split.NumRows()
	for first := int64(0); first < total; first += windowRows {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		n := int(min(windowRows, total-first))
		if err := d.window(first, n); err != nil {
			return err
		}
		if d.done != nil {
			d.done(first + int64(n))
		}
	}
	if err := d.endDocument(); err != nil {
		return err
	}
	for _, s := range d.sinks {
		if err := s.finish(); err != nil {
			return err
		}
	}
	return nil
}

// window passes on n rows, from first on.
func (d *documents) window(first int64, n int) error {
	d.numbers = resize(d.numbers, n)
	if err := d.split.Documents(d.numbers, first); err != nil {
		return err
	}
	schema := d.split.Schema()
	if schema.Labels || schema.LossMask {
		return d.wideRows(first)
	}
	d.rows, d.spans = resize(d.rows, n), resize(d.spans, n)
	for i := range d.rows {
		d.rows[i] = first + int64(i)
	}
	if err := d.split.Locate(d.spans, d.rows); err != nil {
		return err
	}
	return d.plainRows()
}

// plainRows reads the ids of located rows, several rows at a time, and cuts rows longer than a
// piece.
func (d *documents) plainRows() error {
	width := int64(d.split.IDWidth())
	for i := 0; i < len(d.spans); {
		j, size := i, int64(0)
		for ; j < len(d.spans) && size+int64(d.spans[j].Len)*width <= pieceBytes; j++ {
			size += int64(d.spans[j].Len) * width
		}
		if j == i {
			if err := d.longRow(d.numbers[i], d.spans[i], width); err != nil {
				return err
			}
			i++
			continue
		}
		var err error
		if d.buf, err = d.split.AppendIDs(d.buf[:0], d.spans[i:j]); err != nil {
			return err
		}
		at := int64(0)
		for ; i < j; i++ {
			end := at + int64(d.spans[i].Len)*width
			if err := d.deliver(d.numbers[i], d.buf[at:end], nil); err != nil {
				return err
			}
			at = end
		}
	}
	return nil
}

func (d *documents) longRow(document int64, s shard.Span, width int64) error {
	for left := s.Len; left > 0; {
		n := min(left, int32(pieceBytes/width))
		var err error
		if d.buf, err = d.split.AppendIDs(d.buf[:0], []shard.Span{{Off: s.Off, Shard: s.Shard, Len: n}}); err != nil {
			return err
		}
		if err := d.deliver(document, d.buf, nil); err != nil {
			return err
		}
		s.Off += int64(n) * width
		left -= n
	}
	return nil
}

// wideRows reads rows with other columns than ids, one at a time.
func (d *documents) wideRows(first int64) error {
	for i, document := range d.numbers {
		if err := d.split.ReadColumns(first+int64(i), shard.ColumnLabels|shard.ColumnLossMask, &d.row); err != nil {
			return err
		}
		extras := rowExtras{d.row.Labels, d.row.LossMask}
		if schema := d.split.Schema(); schema.LossMask && !schema.Labels {
			d.labels = appendMasked(d.labels[:0], d.row.InputIDs, d.row.LossMask, d.split.IDWidth())
			extras.labels = d.labels
		}
		if err := d.deliver(document, d.row.InputIDs, &extras); err != nil {
			return err
		}
	}
	return nil
}

func (d *documents) deliver(document int64, ids []byte, extras *rowExtras) error {
	if d.open && d.current != document {
		if err := d.endDocument(); err != nil {
			return err
		}
	}
	if !d.open {
		d.open, d.current = true, document
		for _, s := range d.sinks {
			if err := s.begin(document); err != nil {
				return err
			}
		}
	}
	for _, s := range d.sinks {
		if err := s.ids(ids, extras); err != nil {
			return err
		}
	}
	return nil
}

func (d *documents) endDocument() error {
	if !d.open {
		return nil
	}
	d.open = false
	for _, s := range d.sinks {
		if err := s.end(); err != nil {
			return err
		}
	}
	return nil
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
