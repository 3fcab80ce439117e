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
	begin(document int64)
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

	count, tokens int64 // documents and ids

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
	var err error
	d.buf, err = d.split.EachIDs(d.buf, d.spans, pieceBytes, func(i int, ids []byte) error {
		return d.deliver(d.numbers[i], ids, nil)
	})
	return err
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
			s.begin(document)
		}
	}
	d.tokens += int64(len(ids) / d.split.IDWidth())
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
	d.count++
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
