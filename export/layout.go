package export

import (
	"encoding/binary"

	"github.com/dsload/dsload/shard"
)

// A column is a list of numbers that every row of a format has.
type column struct {
	name  string
	part  part
	width int // bytes of a number; 0 for truth values
}

// A part is what of a document a column holds.
type part int

const (
	inputIDs part = iota
	labelIDs      // a target's ids, or what carries loss of the row's own
	lossMask
)

// noLabel is the label of a token that carries no loss, as trainers write it.
const noLabel = -100

// columnsOf returns the columns of the rows of a format, for a dataset with ids of width bytes. What carries loss is in
// labels, and as a mask under both of the names by which it is known.
func columnsOf(format string, schema shard.Schema, width int) []column {
	list := []column{{"input_ids", inputIDs, width}}
	if schema.Labels {
		list = append(list, column{"labels", labelIDs, width})
	} else if schema.LossMask {
		list = append(list, column{"labels", labelIDs, 4})
	}
	if schema.LossMask && format != TRL {
		list = append(list, column{"loss_mask", lossMask, 0})
	}
	if schema.LossMask && !schema.Labels {
		list = append(list, column{"assistant_masks", lossMask, 0})
	}
	return list
}

// appendMasked appends the labels of ids, of 4 bytes each.
func appendMasked(dst, ids []byte, mask []bool, width int) []byte {
	unmasked := int32(noLabel)
	for i, on := range mask {
		label := uint32(unmasked)
		if on {
			label = idAt(ids, i, width)
		}
		dst = binary.LittleEndian.AppendUint32(dst, label)
	}
	return dst
}

// MaxRowTokens is the longest document in formats whose rows are held whole in memory.
const MaxRowTokens = 2 << 20

// document gathers the columns of a document.
type document struct {
	number int64
	input  []byte
	labels []byte
	mask   []bool
}

// rows is the common part of sinks for whole rows: it gathers a document and passes it to add.
type rows struct {
	format string
	width  int // bytes of an id
	doc    document
	add    func(d *document) error
}

func (r *rows) begin(number int64) {
	if cap(r.doc.input) > 2*pieceBytes {
		r.doc = document{} // do not keep the memory of a long document
	}
	r.doc.number = number
	r.doc.input, r.doc.labels, r.doc.mask = r.doc.input[:0], r.doc.labels[:0], r.doc.mask[:0]
}

func (r *rows) ids(raw []byte, extras *rowExtras) error {
	if n := (len(r.doc.input) + len(raw)) / r.width; n > MaxRowTokens {
		return longRow(r.format, r.doc.number)
	}
	r.doc.input = append(r.doc.input, raw...)
	if extras != nil {
		r.doc.labels = append(r.doc.labels, extras.labels...)
		r.doc.mask = append(r.doc.mask, extras.mask...)
	}
	return nil
}

// longRow is the error of a document that is longer than a row.
func longRow(format string, document int64) error {
	return tooLong(format,
		"document %d has more than %d tokens, which a row of this format cannot hold; "+
			"export megatron, nanotron, nanogpt or olmo, "+
			"which have no such limit", document, MaxRowTokens)
}

func (r *rows) end() error { return r.add(&r.doc) }
