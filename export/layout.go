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
