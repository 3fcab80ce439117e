package columnar

import (
	"encoding/binary"
	"io"
)

// The texts of a view column lie in any number of buffers, in any order. Those that are not compressed
// are read where they lie; compressed ones are held in memory while their record batch is read.

// An arrowView is a value of a view column: its length, and the text itself or where it lies.
type arrowView [viewBytes]byte

const (
	viewBytes   = 16
	inlineBytes = 12
)

// viewData holds the buffers of a view column.
type viewData struct {
	f       *arrowFile
	b       *batch
	h       *batchHeader
	most    int64 // what its compressed buffers take in a batch at most
	first   int   // number of its first buffer in the batch
	buffers []viewBuffer
	window  []byte // a stretch of the file
	from    int64  // where it begins
	value   []byte // longer than the window
	src     stream
	room    []byte // for what is compressed: as much as any batch takes
}

type viewBuffer struct {
	at     int64  // in the file
	length int64  // after decompression
	packed bool   // compressed
	data   []byte // decompressed bytes, once they are wanted
}

func (v *viewData) open(f *arrowFile, b *batch, h *batchHeader, first, n int) error {
	v.release()
	v.f, v.b, v.h, v.first, v.from = f, b, h, first, -1
	for i := range n {
		buf := h.buffer(first + i)
		length, packed, err := f.bufferLength(b, buf, h.compression)
		if err != nil {
			return err
		}
		vb := viewBuffer{at: b.body() + buf.offset, length: length, packed: packed}
		if h.compression != compressionNone && buf.length >= 8 {
			vb.at += 8
		}
		v.buffers = append(v.buffers, vb)
	}
	return nil
}

// release frees what a batch took.
func (v *viewData) release() {
	clear(v.buffers)
	v.buffers, v.room = v.buffers[:0], v.room[:0]
}

// text returns what a view stands for, valid until the next call.
func (v *viewData) text(view *arrowView) ([]byte, error) {
	n := int64(int32(binary.LittleEndian.Uint32(view[:])))
	if n < 0 {
		return nil, corrupt("a value has an impossible length")
	}
	if n <= inlineBytes {
		return view[4 : 4+n], nil
	}
	i, offset := int64(int32(binary.LittleEndian.Uint32(view[8:]))), int64(int32(binary.LittleEndian.Uint32(view[12:])))
	if i < 0 || i >= int64(len(v.buffers)) {
		return nil, corrupt("a value lies in a missing buffer")
	}
	buf := &v.buffers[i]
	if offset < 0 || offset > buf.length-n {
		return nil, corrupt("a value lies outside its buffer")
	}
	if n > maxValueBytes {
		return nil, &SizeError{"a value", n}
	}
	if !buf.packed {
		return v.read(buf, offset, n)
	}
	if buf.data == nil {
		if err := v.unpack(int(i)); err != nil {
			return nil, err
		}
	}
	return buf.data[offset : offset+n], nil
}

// read returns a part of a buffer that lies in the file as it is.
func (v *viewData) read(buf *viewBuffer, offset, n int64) ([]byte, error) {
	at := buf.at + offset
	if n > streamBytes {
		v.value = grown(&v.value, int(n))
		return v.value, v.f.readAt(v.value, at)
	}
	if v.from < 0 || at < v.from || at+n > v.from+int64(len(v.window)) {
		if v.window == nil {
			v.window = make([]byte, streamBytes)
		}
		v.window = v.window[:min(streamBytes, v.f.size-at)]
		if v.from = at; int64(len(v.window)) < n {
			v.from = -1
			return nil, corrupt("the file ends early, at byte %d", v.f.size)
		}
		if err := v.f.readAt(v.window, at); err != nil {
			v.from = -1
			return nil, err
		}
	}
	return v.window[at-v.from:][:n], nil
}

// unpack decompresses a buffer.
func (v *viewData) unpack(i int) error {
	if err := v.src.open(v.f, v.b, v.h.buffer(v.first+i), v.h.compression); err != nil {
		return err
	}
	n := v.buffers[i].length
	if v.room == nil {
		v.room = make([]byte, 0, v.most)
	}
	used := int64(len(v.room))
	if used+n > int64(cap(v.room)) {
		return &SizeError{"the compressed buffers of a column of views", used + n}
	}
	data := v.room[used : used+n]
	if _, err := io.ReadFull(v.src.r, data); err != nil {
		return damagedStream(err)
	}
	v.src.left = 0
	v.room, v.buffers[i].data = v.room[:used+n], data
	return nil
}

func (v *viewData) close() { v.src.close() }

// next returns the next text; it is valid until the following call.
func (r *arrowReader) next() (valid bool, b []byte, err error) {
	if valid, err = r.valid(); err != nil {
		return false, nil, err
	}
	switch {
	case r.dictionary != nil:
		var number []byte
		if number, err = r.streams[1].take(int64(r.a.dictionary.width)); err != nil || !valid {
			return false, nil, err
		}
		b, valid, err = r.dictionary.value(number)
	case r.a.isView():
		var raw []byte
		if raw, err = r.streams[1].take(viewBytes); err != nil || !valid {
			return false, nil, err
		}
		r.view = arrowView(raw)
		b, err = r.data.text(&r.view)
	default:
		var n int64
		if n, err = r.extent(); err == nil {
			b, err = r.bytes(n)
		}
	}
	return valid, b, err
}

// viewWindow notes what the compressed buffers of a view column take in a batch, and returns what
// decompressing one of them takes.
func (f *arrowFile) viewWindow(a *arrowField, b *batch, h *batchHeader) (most int64, err error) {
	var sum int64
	for j := range h.variadic(a.views, 1) {
		buf := h.buffer(a.buffer + h.variadic(0, a.views) + 2 + j)
		n, _, err := f.bufferLength(b, buf, h.compression)
		if err != nil {
			return 0, err
		}
		window, err := f.streamWindow(b, buf, h.compression)
		if err != nil {
			return 0, err
		}
		sum, most = sum+n, max(most, window)
	}
	if f.options.Remote {
		sum += max(sum, usualPages) // batches that are not looked at may be larger
	}
	f.viewBytes[a] = max(f.viewBytes[a], sum)
	return most, nil
}
