package jinja

import (
	"sort"
	"strings"
	"unsafe"
)

// made holds the strings that an execution joined of traced ones and others. They too are known by where their bytes
// lie, so that text never grows beyond its capacity.
type made struct {
	text  []byte
	marks []Mark // the traced strings in text, in order
	spare []Mark
}

func (m *made) reset() { m.text, m.marks = m.text[:0], m.marks[:0] }

// offset returns where s lies in the memory at base, -1 if it does not.
func offset(base *byte, length int, s string) int {
	at := uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(base))
	if s != "" && at < uintptr(length) {
		return int(at)
	}
	return -1
}

// holds reports whether a string lies where traced ones do.
func (t *Trace) holds(s string) bool {
	return t.find(s) >= 0 || offset(unsafe.SliceData(t.made.text), len(t.made.text), s) >= 0
}

// marksIn returns the traced strings, or parts of them, in a string that stands at an offset. They are valid until
// the next call.
func (t *Trace) marksIn(s string, at int) []Mark {
	t.made.spare = t.appendMarks(t.made.spare[:0], s, at)
	return t.made.spare
}

func (t *Trace) appendMarks(dst []Mark, s string, at int) []Mark {
	if from := t.find(s); from >= 0 {
		return append(dst, Mark{At: at, From: from, To: from + len(s)})
	}
	start := offset(unsafe.SliceData(t.made.text), len(t.made.text), s)
	if start < 0 {
		return dst
	}
	marks := t.made.marks
	first := sort.Search(len(marks), func(i int) bool { return marks[i].end() > start })
	for _, m := range marks[first:] {
		if m.At >= start+len(s) {
			break
		}
		before, after := max(0, start-m.At), max(0, m.end()-start-len(s))
		dst = append(dst, Mark{At: at + m.At + before - start, From: m.From + before, To: m.To - after})
	}
	return dst
}

func (m *Mark) end() int { return m.At + m.To - m.From }

// core returns where the core of a mark's place is, or would be, in the text that holds the mark.
func (t *Trace) core(m Mark) (start, end int) {
	p := &t.Places[t.PlaceOf(m.From)]
	return m.At + p.Core - m.From, m.At + p.CoreEnd - m.From
}

// traced reports whether a string is a traced one, or holds some of one.
func (t *Trace) traced(s string) bool { return t.holds(s) && len(t.marksIn(s, 0)) > 0 }

// join joins strings, so that the traced ones in the result are known.
func (t *Trace) join(parts ...string) string {
	marks, n := t.made.spare[:0], 0
	for _, part := range parts {
		marks = t.appendMarks(marks, part, n)
		n += len(part)
	}
	t.made.spare = marks
	return t.keep(marks, n, parts...)
}

// keep joins strings, n bytes, in which the traced ones stand where marks say.
func (t *Trace) keep(marks []Mark, n int, parts ...string) string {
	m := &t.made
	at, most := len(m.text), madePerText*len(t.Text)+madeBytes
	switch {
	case len(marks) == 0:
		return strings.Join(parts, "")
	case at+n > most, len(m.marks)+len(marks) > marksPerPlace*len(t.Places):
		t.Faithful = false
		return strings.Join(parts, "")
	case at == 0 && cap(m.text) < most:
		m.text = make([]byte, 0, most)
	}
	for _, part := range parts {
		m.text = append(m.text, part...)
	}
	for _, mark := range marks {
		mark.At += at
		m.marks = append(m.marks, mark)
	}
	return unsafe.String(&m.text[at], n)
}

// madePerText and madeBytes bound what is joined: as many bytes for each of the traced strings, and some more.
const madePerText, madeBytes = 2, 256

// apart reports whether what was found in a string, n bytes at an offset, would be there too if there were letters
// around the cores.
func (t *Trace) apart(s string, at, n int) bool {
	for _, m := range t.marksIn(s, 0) {
		if start, end := t.core(m); at < end && at+n > start {
			return false
		}
	}
	return true
}
