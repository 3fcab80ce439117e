package export

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// Megatron's codes for the type of an id (megatron/core/datasets/indexed_dataset.py).
const (
	megatronUint16 = 8
	megatronInt32  = 4
)

// writeMegatron writes SPLIT.idx, all numbers little-endian: the magic "MMIDIDX\0\0", version 1
// (uint64), the code of the id's type (uint8), the number of sequences and of document borders
// (uint64); then int32 lengths, int64 offsets in bytes, and the int64 borders 0, 1, 2 …, since a
// sequence is a document.
func (t *tokenFile) writeMegatron() error {
	return writeInto(t.base+megatronIndex, func(w *file) error {
		code := byte(megatronUint16)
		if t.to == 4 {
			code = megatronInt32
		}
		w.Write(append([]byte("MMIDIDX\x00\x00"), 1, 0, 0, 0, 0, 0, 0, 0, code))
		w.number(uint64(t.docs), 8)
		w.number(uint64(t.docs+1), 8)
		if err := t.eachLength(func(n int64) { w.number(uint64(n), 4) }); err != nil {
			return err
		}
		at := int64(0)
		err := t.eachLength(func(n int64) {
			w.number(uint64(at), 8)
			at += n * int64(t.to)
		})
		for i := range t.docs + 1 {
			w.number(uint64(i), 8)
		}
		return err
	})
}

// writeNanotron writes SPLIT.ds.index, the uint64 end of every document in tokens, and
// SPLIT.ds.metadata, three lines: the tokenizer and the bytes of an id, the number of tokens, and
// that number for people.
func (t *tokenFile) writeNanotron() error {
	err := writeInto(t.base+nanotronEnds, func(w *file) error {
		at := int64(0)
		return t.eachLength(func(n int64) {
			at += n
			w.number(uint64(at), 8)
		})
	})
	if err != nil {
		return err
	}
	meta := fmt.Sprintf("%s|%d\n%d\n%s", t.tokenizer, t.to, t.tokens, metric(t.tokens))
	return writeFile(t.base+nanotronMeta, []byte(meta))
}

// metric formats a number of tokens with a prefix, such as 1.23 MT.
func metric(n int64) string {
	v, unit := float64(n), ""
	for _, u := range []string{" k", " M", " G", " T"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "" {
		return fmt.Sprintf("%d T", n)
	}
	return fmt.Sprintf("%.3g%sT", v, unit)
}

// olmoLevel is the level of compression: on numbers that ascend, this one is the fastest, and makes
// files as small as higher ones.
const olmoLevel = 3

// writeOLMo writes SPLIT.csv.gz: a line "start,end" in tokens for every document.
func (t *tokenFile) writeOLMo() error {
	return writeInto(t.base+olmoBounds, func(w *file) error {
		z, err := gzip.NewWriterLevel(w, olmoLevel) // without name and time, so that equal datasets give equal bytes
		if err != nil {
			return err
		}
		at := int64(0)
		var line []byte
		return errors.Join(t.eachLength(func(n int64) {
			line = strconv.AppendInt(line[:0], at, 10)
			line = append(line, ',')
			at += n
			line = append(strconv.AppendInt(line, at, 10), '\n')
			z.Write(line) // Close returns its error
		}), z.Close())
	})
}
