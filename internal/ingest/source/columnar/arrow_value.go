package columnar

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/dsload/dsload/internal/jsonscan"
)

// A bitReader reads bits from a stream.
type bitReader struct {
	b byte
	n int
}

func (r *bitReader) next(s *stream) (bool, error) {
	if r.n == 0 {
		b, err := s.take(1)
		if err != nil {
			return false, err
		}
		r.b, r.n = b[0], 8
	}
	bit := r.b&1 != 0
	r.b, r.n = r.b>>1, r.n-1
	return bit, nil
}

// valid goes to the next value and reports whether it is there, not null.
func (r *arrowReader) valid() (bool, error) {
	if r.length == 0 {
		return false, corrupt("a column has fewer values than there are rows")
	}
	r.length--
	if r.a.kind == arrowNull {
		return false, nil
	}
	if !r.nulls {
		return true, nil
	}
	return r.bits[0].next(&r.streams[0])
}

// extent returns how many bytes or elements the next value has.
func (r *arrowReader) extent() (int64, error) {
	if !r.begun {
		first, err := r.offset()
		if err != nil {
			return 0, err
		}
		r.begun, r.last = true, first
		if err := r.skipFirst(first); err != nil {
			return 0, err
		}
	}
	end, err := r.offset()
	if err != nil {
		return 0, err
	}
	n := end - r.last
	if n < 0 {
		return 0, corrupt("a value ends before it begins")
	}
	r.last = end
	return n, nil
}

// skipFirst passes over what lies before the first value.
func (r *arrowReader) skipFirst(n int64) error {
	if n < 0 {
		return corrupt("a value begins before its buffer")
	}
	if len(r.children) == 0 {
		return r.streams[2].skip(n)
	}
	var none object
	for range n {
		if _, err := r.children[0].appendJSON(nil, &none); err != nil {
			return err
		}
	}
	return nil
}

func (r *arrowReader) offset() (int64, error) {
	size := int64(4)
	switch r.a.kind {
	case arrowLargeBinary, arrowLargeUtf8, arrowLargeList:
		size = 8
	}
	b, err := r.streams[1].take(size)
	if err != nil {
		return 0, err
	}
	if size == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// maxValueBytes bounds a value, which is held as a whole.
const maxValueBytes = 8 << 20

// bytes returns the n bytes of a value. A value longer than maxValueBytes is a *SizeError.
func (r *arrowReader) bytes(n int64) ([]byte, error) {
	if n > r.streams[2].left {
		return nil, corrupt("a value is longer than its buffer")
	}
	if n > maxValueBytes {
		return nil, &SizeError{"a value", n}
	}
	return r.streams[2].take(n)
}

// appendJSON appends the next value.
func (r *arrowReader) appendJSON(dst []byte, o *object) ([]byte, error) {
	if r.dictionary != nil || r.a.isView() {
		return r.appendNext(dst, o)
	}
	valid, err := r.valid()
	if err != nil {
		return dst, err
	}
	if o.values++; o.values > maxRowValues {
		return dst, tooManyValues()
	}
	dst = o.trim(dst)
	at, omitted := len(dst), o.omitted
	switch a := r.a; a.kind {
	case arrowNull:
	case arrowBinary, arrowUtf8, arrowLargeBinary, arrowLargeUtf8:
		var n int64
		var b []byte
		if n, err = r.extent(); err == nil {
			b, err = r.bytes(n)
		}
		dst = r.a.appendText(dst, b)
	case arrowList, arrowLargeList, arrowMap, arrowFixedList:
		dst, err = r.appendList(dst, o)
	case arrowStruct:
		dst, err = r.appendStruct(dst, o)
	case arrowBool:
		var b bool
		b, err = r.bits[1].next(&r.streams[1])
		dst = strconv.AppendBool(dst, b)
	default:
		var b []byte
		if b, err = r.streams[1].take(int64(a.width)); err == nil {
			dst = a.appendFixed(dst, b)
		}
	}
	if err != nil {
		return dst, err
	}
	if !valid {
		o.omitted = omitted
		dst = append(dst[:min(at, len(dst))], "null"...)
	}
	return dst, nil
}

func (r *arrowReader) appendList(dst []byte, o *object) (_ []byte, err error) {
	n := int64(r.a.width)
	if r.a.kind != arrowFixedList {
		n, err = r.extent()
	}
	dst = append(dst, '[')
	for i := int64(0); i < n && err == nil; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, err = r.children[0].appendJSON(dst, o)
	}
	return append(dst, ']'), err
}

func (r *arrowReader) appendStruct(dst []byte, o *object) (_ []byte, err error) {
	dst = append(dst, '{')
	for _, c := range r.children {
		before := len(dst)
		dst = beginMember(dst, c.a.name)
		at := len(dst)
		if dst, err = c.appendJSON(dst, o); err != nil {
			break
		}
		dst = o.endMember(dst, before, at, r.a.sparse)
	}
	return append(dst, '}'), err
}

func (a *arrowField) appendText(dst, b []byte) []byte {
	if a.json {
		return appendTyped(dst, b)
	}
	return jsonscan.AppendString(dst, b)
}

// appendNext appends the next value of a column of views, or by a dictionary.
func (r *arrowReader) appendNext(dst []byte, o *object) ([]byte, error) {
	if o.values++; o.values > maxRowValues {
		return dst, tooManyValues()
	}
	valid, b, err := r.next()
	switch {
	case err != nil:
		return dst, err
	case !valid:
		dst = append(dst, "null"...)
	case r.a.isText():
		dst = r.a.appendText(dst, b)
	default:
		dst = append(dst, b...)
	}
	return o.trim(dst), nil
}

// perSecond returns how many units of time a second has.
func (a *arrowField) perSecond() int64 { return []int64{1, 1e3, 1e6, 1e9}[min(max(0, a.unit), 3)] }

func (a *arrowField) appendFixed(dst, b []byte) []byte {
	var v uint64
	for i := range min(len(b), 8) {
		v |= uint64(b[i]) << (8 * i)
	}
	shift := uint(64 - 8*min(len(b), 8))
	signed := int64(v<<shift) >> shift
	switch a.kind {
	case arrowInt:
		if !a.signed {
			return strconv.AppendUint(dst, v, 10)
		}
	case arrowFloat:
		switch a.width {
		case 2:
			return appendFloat(dst, halfFloat(uint16(v)))
		case 4:
			return appendFloat(dst, float64(math.Float32frombits(uint32(v))))
		}
		return appendFloat(dst, math.Float64frombits(v))
	case arrowDate:
		const day = 24 * 3600 * 1e3
		if a.unit == 0 {
			return appendDate(dst, signed)
		}
		days := signed / day
		if signed%day < 0 {
			days--
		}
		return appendDate(dst, days)
	case arrowTime:
		return appendClock(dst, signed, a.perSecond())
	case arrowTimestamp:
		return appendTime(dst, signed, a.perSecond(), a.utc)
	case arrowDuration:
		return appendFloat(dst, float64(signed)/float64(a.perSecond()))
	case arrowDecimal:
		b = bytes.Clone(b)
		slices.Reverse(b)
		return appendDecimal(dst, bigEndian(b), a.scale)
	case arrowFixedBinary:
		if a.uuid {
			return appendUUID(dst, b)
		}
		return jsonscan.AppendString(dst, b)
	}
	return strconv.AppendInt(dst, signed, 10)
}
