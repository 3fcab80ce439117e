package export

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
)

// jsonlSink writes SPLIT.jsonl: {"text": decoded, "input_ids": […]} a line, with "labels" and
// "target" for pairs and "loss_mask" where the dataset has one.
type jsonlSink struct {
	rows
	decode func(ids []uint32) string
	pairs  bool
	masked bool
	out    *file
	line   []byte
	number []uint32
}

func newJSONLSink(base string, width int, pairs, masked bool, decode func([]uint32) string) (*jsonlSink, error) {
	s := &jsonlSink{decode: decode, pairs: pairs, masked: masked}
	s.rows = rows{format: JSONL, width: width, add: s.add}
	var err error
	s.out, err = create(base + jsonlSuffix)
	return s, err
}

func (s *jsonlSink) add(d *document) error {
	s.line = append(s.line[:0], '{')
	s.idsAs("text", "input_ids", d.input)
	if s.pairs {
		s.line = append(s.line, ", "...)
		s.idsAs("target", "labels", d.labels)
	}
	if s.masked {
		s.line = append(s.line, `, "loss_mask": [`...)
		for i, on := range d.mask {
			if i > 0 {
				s.line = append(s.line, ", "...)
			}
			s.line = strconv.AppendBool(s.line, on)
		}
		s.line = append(s.line, ']')
	}
	s.line = append(s.line, "}\n"...)
	_, err := s.out.Write(s.line)
	return err
}

// idsAs appends the decoded text and the ids under their names.
func (s *jsonlSink) idsAs(textName, idsName string, raw []byte) {
	number := s.number[:0]
	for i := 0; i+s.width <= len(raw); i += s.width {
		if s.width == 2 {
			number = append(number, uint32(binary.LittleEndian.Uint16(raw[i:])))
		} else {
			number = append(number, binary.LittleEndian.Uint32(raw[i:]))
		}
	}
	line := append(append(append(s.line, '"'), textName...), `": `...)
	line = appendQuoted(line, s.decode(number))
	line = append(append(append(line, `, "`...), idsName...), `": [`...)
	for _, id := range number {
		line = append(strconv.AppendUint(line, uint64(id), 10), ", "...)
	}
	s.number, s.line = number, append(bytes.TrimSuffix(line, []byte(", ")), ']')
}

// appendQuoted appends valid UTF-8 as a JSON string, as json.Marshal writes it.
func appendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0 // of what is not yet written
	for i := 0; i < len(text); i++ {
		c := text[i]
		if !escaped[c] || c == 0xe2 && !strings.HasPrefix(text[i:], "\u2028") && !strings.HasPrefix(text[i:], "\u2029") {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		if n := strings.IndexByte("\"\\\b\f\n\r\t", c); n >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[n])
			continue
		}
		if c == 0xe2 { // a line or paragraph separator, which ends a line of JavaScript
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[text[i+2]&0xf])
			i, from = i+2, i+3
			continue
		}
		dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
	return append(append(dst, text[from:]...), '"')
}

// escaped are the bytes that JSON strings do not hold as they are, those that HTML gives a meaning, and
// the first one of U+2028 and U+2029.
var escaped = func() (e [256]bool) {
	for c := range 0x20 {
		e[c] = true
	}
	for _, c := range []byte("\"\\<>&\xe2") {
		e[c] = true
	}
	return e
}()

func (s *jsonlSink) finish() error { return s.out.commit() }
func (s *jsonlSink) discard()      { s.out.discard() }
