package export

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/shard"
)

// jsonlSink writes SPLIT.jsonl: {"text": decoded, "input_ids": […]} a line, with the other columns, and "target" for
// pairs.
type jsonlSink struct {
	rows
	decode  func(ids []uint32) string
	columns []column
	pairs   bool
	out     *file
	line    []byte
	text    []byte
	number  []uint32
}

func newJSONLSink(base string, of []column, pairs bool, decode func([]uint32) string) (*jsonlSink, error) {
	s := &jsonlSink{decode: decode, columns: of, pairs: pairs}
	s.rows = rows{format: JSONL, width: of[0].width, add: s.add}
	var err error
	s.out, err = create(base + jsonlSuffix)
	return s, err
}

func (s *jsonlSink) add(d *document) error {
	s.line = append(s.line[:0], '{')
	for i, c := range s.columns {
		if i > 0 {
			s.line = append(s.line, ", "...)
		}
		switch {
		case c.part == inputIDs:
			s.idsAs("text", c.name, d.input)
		case c.part == labelIDs && s.pairs:
			s.idsAs("target", c.name, d.labels)
		case c.part == labelIDs:
			s.labels(d)
		default:
			s.mask(c.name, d.mask)
		}
	}
	s.line = append(s.line, "}\n"...)
	_, err := s.out.Write(s.line)
	return err
}

// labels appends the ids that carry loss, and noLabel for the others.
func (s *jsonlSink) labels(d *document) {
	s.line = append(s.line, `"labels": [`...)
	for i, on := range d.mask {
		if on {
			s.line = appendNumbers(s.line, []uint32{idAt(d.input, i, s.width)})
		} else {
			s.line = append(strconv.AppendInt(s.line, noLabel, 10), ", "...)
		}
	}
	s.line = append(bytes.TrimSuffix(s.line, []byte(", ")), ']')
}

// mask appends truth values under their name.
func (s *jsonlSink) mask(name string, mask []bool) {
	s.line = append(append(append(s.line, '"'), name...), `": [`...)
	for _, on := range mask {
		s.line = append(strconv.AppendBool(s.line, on), ", "...)
	}
	s.line = append(bytes.TrimSuffix(s.line, []byte(", ")), ']')
}

// idsAs appends the decoded text and the ids under their names.
func (s *jsonlSink) idsAs(textName, idsName string, raw []byte) {
	row := shard.Row{Width: s.width, InputIDs: raw}
	number := row.AppendInputIDs(s.number[:0])
	s.text = append(s.text[:0], s.decode(number)...)
	line := append(append(append(s.line, '"'), textName...), `": `...)
	line = appendQuoted(line, s.text)
	line = append(append(append(line, `, "`...), idsName...), `": [`...)
	line = appendNumbers(line, number)
	s.number, s.line = number, append(bytes.TrimSuffix(line, []byte(", ")), ']')
}

// appendNumbers appends numbers, with a comma and a space after each.
func appendNumbers(dst []byte, list []uint32) []byte {
	const block, most = 64, len("4294967295, ")
	for ; len(list) > 0; list = list[min(block, len(list)):] {
		at := len(dst)
		dst = slices.Grow(dst, block*most)
		to := dst[:cap(dst)]
		for _, n := range list[:min(block, len(list))] {
			if n >= 1e8 {
				at += copy(to[at:], strconv.AppendUint(to[at:at], uint64(n), 10))
			} else {
				// Eight digits at once: four in each half of a word, then two in each quarter, then one in each byte,
				// the first in the lowest.
				v := uint64(n/1e4) | uint64(n%1e4)<<32
				tens := v * 10486 >> 20 & 0x7f_0000007f
				v = tens | (v-100*tens)<<16
				tens = v * 103 >> 10 & 0x0f_000f_000f_000f
				v = tens | (v-10*tens)<<8
				zeros := bits.TrailingZeros64(v|1<<56) &^ 7 // before the first digit that counts
				binary.LittleEndian.PutUint64(to[at:], (v|0x3030303030303030)>>zeros)
				at += 8 - zeros/8
			}
			to[at], to[at+1] = ',', ' '
			at += 2
		}
		dst = to[:at]
	}
	return dst
}

// appendQuoted appends valid UTF-8 as a JSON string, as json.Marshal writes it without its escapes for HTML.
func appendQuoted(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0 // begins what is not yet written
	for i := unescaped(text); i < len(text); i += 1 + unescaped(text[i+1:]) {
		c := text[i]
		if !escaped[c] || c == 0xe2 && (len(text) < i+3 || text[i+1] != 0x80 || text[i+2]|1 != 0xa9) {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		if n := strings.IndexByte("\"\\\b\f\n\r\t", c); n >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[n])
			continue
		}
		if c == 0xe2 { // U+2028 or U+2029, a line or paragraph separator, which ends a line of JavaScript
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[text[i+2]&0xf])
			i, from = i+2, i+3
			continue
		}
		dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
	return append(append(dst, text[from:]...), '"')
}

// unescaped returns how many bytes text begins with that are not in escaped, at most 7 fewer.
func unescaped(text []byte) (n int) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; n+8 <= len(text); n += 8 {
		w := binary.LittleEndian.Uint64(text[n:])
		// A byte that is looked for becomes 0, from which 1 is borrowed.
		quote, slash, e2 := w^'"'*ones, w^'\\'*ones, w^0xe2*ones
		found := (quote-ones)&^quote | (slash-ones)&^slash | (e2-ones)&^e2 | (w-' '*ones)&^w
		if found &= highs; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	return n
}

// escaped are the bytes that JSON strings do not hold as they are, and the first one of U+2028 and U+2029.
var escaped = func() (e [256]bool) {
	for c := range 0x20 {
		e[c] = true
	}
	for _, c := range []byte("\"\\\xe2") {
		e[c] = true
	}
	return e
}()

func (s *jsonlSink) finish() error { return s.out.commit() }
func (s *jsonlSink) discard()      { s.out.discard() }
