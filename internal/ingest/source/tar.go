package source

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// A tarMembers reads the headers of a tar archive from the window: the old format, ustar, pax and
// GNU's long names.
type tarMembers struct {
	ended bool // the end mark was read
}

const (
	tarBlock = 512
	// maxTarText bounds a long name or the records of a pax header.
	maxTarText = 64 << 10
)

// isTar reports whether a tar header begins here.
func isTar(head []byte) bool {
	return len(head) >= tarBlock && tarChecksum(head[:tarBlock]) && head[0] != 0
}

// tarChecksum reports whether a header's checksum is right.
func tarChecksum(h []byte) bool {
	want, ok := tarNumber(h[148:156])
	if !ok {
		return false
	}
	var plain, signed int64
	for i, b := range h {
		if 148 <= i && i < 156 {
			b = ' '
		}
		plain += int64(b)
		signed += int64(int8(b))
	}
	return want == plain || want == signed
}

// tarNumber reads a number of a header: octal digits, or a binary number after a set bit.
func tarNumber(field []byte) (int64, bool) {
	if field[0]&0x80 != 0 {
		if field[0] != 0x80 {
			return 0, false // negative, or beyond 64 bits
		}
		var v int64
		for _, b := range field[1:] {
			if v >= 1<<55 {
				return 0, false
			}
			v = v<<8 | int64(b)
		}
		return v, true
	}
	text := strings.Trim(string(field), " \x00")
	if text == "" {
		return 0, true
	}
	v, err := strconv.ParseInt(text, 8, 63)
	return v, err == nil && v >= 0
}

func tarText(field []byte) string {
	if i := bytes.IndexByte(field, 0); i >= 0 {
		field = field[:i]
	}
	return string(field)
}

// entry reads a header: the name in it, the kind of the entry, and the length of what follows.
func (t *tarMembers) entry(w *frame.Window) (name string, kind byte, length int64, err error) {
	h, err := t.header(w)
	if err != nil {
		return "", 0, 0, err
	}
	length, ok := tarNumber(h[124:136])
	if !ok {
		return "", 0, 0, tarCorrupt(w, "a size is not a number")
	}
	name, kind = tarText(h[:100]), h[156]
	if prefix := tarText(h[345:500]); prefix != "" && bytes.HasPrefix(h[257:], []byte("ustar\x00")) {
		name = prefix + "/" + name
	}
	w.Consume(tarBlock)
	return name, kind, length, nil
}

// next goes to the next file of the archive: io.EOF after the last one.
func (t *tarMembers) next(w *frame.Window) (m member, err error) {
	var name string
	size := int64(-1)
	for {
		inHeader, kind, length, err := t.entry(w)
		if err != nil {
			return m, err
		}
		m = member{name: inHeader}
		switch kind {
		case 'L', 'K', 'x', 'g':
			text, err := t.text(w, length)
			if err != nil {
				return m, err
			}
			switch kind {
			case 'L':
				name = tarText(text)
			case 'x':
				if err := paxRecords(text, &name, &size); err != nil {
					return m, tarCorrupt(w, err.Error())
				}
			}
			continue
		}
		if name != "" {
			m.name = name
		}
		if size >= 0 {
			length = size
		}
		m.name = strings.ToValidUTF8(m.name, "\uFFFD")
		switch kind {
		case 0, '0', '7':
			m.folder = strings.HasSuffix(m.name, "/")
		case '5':
			m.folder = true
		case '1', '2', '3', '4', '6':
			m.special, m.link = true, kind <= '2'
			if kind != '1' || size < 0 {
				length = 0 // links have a size and no content
			}
		case 'S':
			return m, fault.Of(cause.Unsupported,
				"%s is stored as a sparse file; unpack the archive with `tar -xf` and name the folder", m.name)
		default:
			m.special = true
		}
		m.start, m.end = w.Offset(), w.Offset()+length
		m.next = m.end + (tarBlock-length%tarBlock)%tarBlock
		if m.next < m.start {
			return m, tarCorrupt(w, "a size is impossible")
		}
		return m, nil
	}
}

// end implements memberLister.
func (t *tarMembers) end(w *frame.Window, m *member) error {
	if w.Skip(m.end) {
		return nil
	}
	return cutOff(w, m)
}

// header returns the next header, not yet consumed. Zero blocks end the archive; another one may
// follow, as where archives were joined.
func (t *tarMembers) header(w *frame.Window) ([]byte, error) {
	for {
		if !w.Need(tarBlock) {
			rest := w.Unread()
			switch err := w.Failed(); {
			case err != nil:
				return nil, err
			case t.ended && len(bytes.Trim(rest, "\x00")) == 0:
				w.Consume(len(rest))
				return nil, io.EOF
			case t.ended:
				return nil, tarCorrupt(w, "something follows its end")
			}
			return nil, fault.Of(cause.Truncated,
				"the tar archive ends without its end mark, two blocks of zeros; copy the file again")
		}
		h := w.Unread()[:tarBlock]
		if len(bytes.Trim(h, "\x00")) > 0 {
			if !tarChecksum(h) {
				return nil, tarCorrupt(w, "there is no header where one belongs")
			}
			t.ended = false
			return h, nil
		}
		w.Consume(tarBlock)
		t.ended = true
	}
}

// text returns the content of a header that extends the next one.
func (t *tarMembers) text(w *frame.Window, length int64) ([]byte, error) {
	if length > maxTarText {
		return nil, tarCorrupt(w, "a long name or its attributes take more than 64 KiB")
	}
	padded := int(length+tarBlock-1) / tarBlock * tarBlock
	if !w.Need(padded) {
		if err := w.Failed(); err != nil {
			return nil, err
		}
		return nil, fault.Of(cause.Truncated, "the tar archive ends within a header; copy the file again")
	}
	text := bytes.Clone(w.Unread()[:length])
	w.Consume(padded)
	return text, nil
}

// paxRecords takes name and size from "LENGTH KEY=VALUE\n" records.
func paxRecords(text []byte, name *string, size *int64) error {
	for len(text) > 0 {
		digits, _, found := bytes.Cut(text, []byte(" "))
		n, err := strconv.Atoi(string(digits))
		if !found || err != nil || n <= len(digits)+1 || n > len(text) || text[n-1] != '\n' {
			return fault.Of(cause.Corrupt, "an extended header is malformed")
		}
		key, value, _ := strings.Cut(string(text[len(digits)+1:n-1]), "=")
		text = text[n:]
		switch key {
		case "path":
			*name = value
		case "size":
			v, err := strconv.ParseInt(value, 10, 63)
			if err != nil || v < 0 {
				return fault.Of(cause.Corrupt, "an extended header has a size that is not a number")
			}
			*size = v
		case "GNU.sparse.major", "GNU.sparse.map", "GNU.sparse.size":
			return fault.Of(cause.Unsupported, "a member is stored as a sparse file")
		}
	}
	return nil
}

func tarCorrupt(w *frame.Window, what string) error {
	return fault.Of(cause.Corrupt, "the tar archive is damaged at byte %d: %s; copy the file again", w.Offset(), what)
}
