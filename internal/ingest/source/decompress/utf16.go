package decompress

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// Text in UTF-16 that begins with a byte order mark is read as the UTF-8 that it stands for: offsets
// and checksums are of that. A surrogate without its other half becomes a byte that is not UTF-8, so
// that it is replaced and counted as ill-formed UTF-8 is.

const (
	utf16LittleMark = "\xff\xfe"
	utf16BigMark    = "\xfe\xff"
	notUTF8         = 0xff
)

// UTF16Order returns the byte order of text in UTF-16, nil for other text.
func UTF16Order(head []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(head, []byte(utf16LittleMark)):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte(utf16BigMark)):
		return binary.BigEndian
	}
	return nil
}

const (
	utf16Chunk = 32 << 10
	// UTF16Bytes is the memory of a UTF16Reader.
	UTF16Bytes = 4 * utf16Chunk
)

// A UTF16Reader converts what it reads where that begins with a mark of UTF-16, and passes on
// everything else.
type UTF16Reader struct {
	Source io.Reader
	order  binary.ByteOrder // nil for other text
	begun  bool
	in     []byte // read, not yet converted
	buf    []byte
	out    []byte // converted, not yet handed out
	text   []byte
	err    error
}

func (r *UTF16Reader) Read(p []byte) (int, error) {
	if !r.begun {
		if err := r.begin(); err != nil {
			return 0, err
		}
	}
	if r.order == nil {
		if len(r.in) > 0 {
			n := copy(p, r.in)
			r.in = r.in[n:]
			return n, nil
		}
		if r.err != nil {
			return 0, r.err
		}
		return r.Source.Read(p)
	}
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.convert()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// Marked reports whether the text begins with a mark of UTF-16.
func (r *UTF16Reader) Marked() bool {
	_ = r.begin() // Read returns the error, too
	return r.order != nil
}

// begin reads the first bytes, which say what the text is.
func (r *UTF16Reader) begin() error {
	first := make([]byte, 2)
	n, err := ReadBlock(r.Source, first)
	r.begun, r.in, r.err = true, first[:n], err
	if r.order = UTF16Order(r.in); r.order != nil {
		r.in, r.buf = nil, make([]byte, utf16Chunk)
		r.text = make([]byte, 0, 2*utf16Chunk)
	} else if n == 0 {
		return err
	}
	return nil
}

// convert reads on and converts all whole characters.
func (r *UTF16Reader) convert() {
	kept := copy(r.buf, r.in)
	n, err := r.Source.Read(r.buf[kept:])
	r.err = err
	data := r.buf[:kept+n]
	var used int
	r.text, used = AppendUTF8(r.text[:0], data, r.order, err != nil)
	r.out, r.in = r.text, data[used:]
	if err == io.EOF && len(r.in) > 0 {
		r.err = fault.Of(cause.Truncated, "the text in UTF-16 ends within a character; copy the file again")
	}
}

// AppendUTF8 converts UTF-16 and returns how many bytes it used: all, except for a character that
// may continue. last is set if nothing follows.
func AppendUTF8(dst, data []byte, order binary.ByteOrder, last bool) (text []byte, used int) {
	for used+2 <= len(data) {
		r := rune(order.Uint16(data[used:]))
		if !utf16.IsSurrogate(r) {
			dst = utf8.AppendRune(dst, r)
			used += 2
			continue
		}
		if used+4 > len(data) && !last && r < 0xdc00 {
			break
		}
		if used+4 <= len(data) {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(data[used+2:]))); pair != utf8.RuneError {
				dst = utf8.AppendRune(dst, pair)
				used += 4
				continue
			}
		}
		dst = append(dst, notUTF8)
		used += 2
	}
	return dst, used
}
