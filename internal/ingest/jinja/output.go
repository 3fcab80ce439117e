package jinja

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// output is where text goes: the result, or the value of a block.
type output struct {
	data  []byte
	from  int
	top   bool
	marks bool // data holds markStart and markEnd
	// only is the text of a block so far, if it is one string, so that no copy of it is made. data is then empty.
	only   string
	traced []Mark // marks of a block's text
}

// finish removes the marks, and returns the generation blocks that they surround.
func (o *output) finish() (text []byte, spans []Span) {
	if !o.marks {
		return o.data, nil
	}
	var open []int
	text = o.data[:o.from]
	for rest := o.data[o.from:]; ; {
		n := slices.IndexFunc(rest, func(b byte) bool { return b >= markStart[0] })
		if n < 0 {
			return append(text, rest...), spans
		}
		text = append(text, rest[:n]...)
		if at, last := len(text)-o.from, len(open)-1; rest[n] == markStart[0] {
			open = append(open, at)
		} else if last >= 0 {
			spans, open = append(spans, Span{open[last], at}), open[:last]
		}
		rest = rest[n+1:]
	}
}

// room makes sure that n more bytes may be written. Text of a value is charged, text of the result has its
// own limit.
func (e *execution) room(n int) {
	o := e.out
	if !o.top {
		e.charge(int64(n))
		return
	}
	if int64(len(o.data)-o.from+n) > e.limits.Output {
		e.fail("%w: it writes more than %d bytes for this record", ErrLimit, e.limits.Output)
	}
	e.step(int64(n) / stepBytes)
}

// write appends to the output.
func (e *execution) write(s string) {
	e.room(len(s))
	e.add(s)
}

// add appends what there is room for.
func (e *execution) add(s string) {
	o := e.out
	if !o.top && o.only == "" && len(o.data) == 0 {
		o.only = s
		return
	}
	if s == "" {
		return
	}
	e.join(o)
	if e.trace != nil {
		e.trace.wrote(o, s)
	}
	o.data = append(o.data, s...)
	if e.template.marks {
		o.marks = o.marks || strings.Contains(s, markStart) || strings.Contains(s, markEnd)
	}
}

// join copies the text of a block, which is one string, since more follows.
func (e *execution) join(o *output) {
	if s := o.only; s != "" {
		o.only = ""
		if e.trace != nil {
			e.trace.wrote(o, s)
		}
		o.data = append(o.data, s...)
	}
}

// capture calls run and returns what it wrote.
func (e *execution) capture(run func()) string {
	outer := e.out
	inner := e.takeOutput()
	e.out = inner
	run()
	s := inner.only
	switch {
	case s != "":
	case len(inner.traced) > 0:
		s = e.trace.keep(inner.traced, len(inner.data), unsafe.String(unsafe.SliceData(inner.data), len(inner.data)))
	default:
		s = string(inner.data)
	}
	e.charge(int64(len(s)))
	e.out = outer
	if *inner = (output{data: inner.data[:0], traced: inner.traced[:0]}); cap(inner.data) <= keptText/keptOutputs && len(e.outputs) < keptOutputs {
		e.outputs = append(e.outputs, inner)
	}
	return s
}

// takeOutput returns where the text of a block goes.
func (e *execution) takeOutput() *output {
	n := len(e.outputs)
	if n == 0 {
		return &output{}
	}
	o := e.outputs[n-1]
	e.outputs = e.outputs[:n-1]
	return o
}

// show writes the value of an expression as {{ }} does. Text that is joined, and JSON, is written without
// making a string of it first, at the same charge.
func (e *execution) show(n node, s *scope) {
	base := len(e.parts)
	switch n := n.(type) {
	case *binaryExpr:
		if n.operator != "+" {
			break
		}
		v, length := e.operand(n, s)
		if length >= 0 {
			e.writeParts(base, length)
		} else {
			e.write(e.str(v))
		}
		return
	case *concatExpr:
		e.enter()
		e.step(1)
		length := e.concat(n, s)
		e.leave()
		e.writeParts(base, length)
		return
	case *filterExpr:
		if n.name == "tojson" {
			e.showJSON(n, s)
			return
		}
	}
	e.write(e.str(e.eval(n, s)))
}

// writeParts writes the last parts, which have length bytes, and drops them.
func (e *execution) writeParts(base int, length int64) {
	e.room(int(length))
	for _, part := range e.parts[base:] {
		e.add(part)
	}
	e.dropParts(base)
}

func (e *execution) dropParts(base int) {
	clear(e.parts[base:])
	e.parts = e.parts[:base]
}

// joinParts joins the last parts, and drops them.
func (e *execution) joinParts(base int) string {
	parts := slices.DeleteFunc(e.parts[base:], func(part string) bool { return part == "" })
	var text string
	if len(parts) > 1 && e.trace != nil {
		text = e.trace.join(parts...)
	} else {
		text = strings.Join(parts, "") // a single one as it is
	}
	e.dropParts(base)
	return text
}

// operand evaluates an operand of +. Text is appended to e.parts, in the parts of which it is joined, and its
// length returned; of other values the length is -1.
func (e *execution) operand(n node, s *scope) (v any, length int64) {
	b, ok := n.(*binaryExpr)
	if !ok || b.operator != "+" {
		return e.part(e.eval(n, s))
	}
	e.enter()
	e.step(1)
	v, length = e.sum(b, s)
	e.leave()
	return v, length
}

// sum evaluates operands joined by +, with a result like operand's.
func (e *execution) sum(n *binaryExpr, s *scope) (v any, length int64) {
	base := len(e.parts)
	left, length := e.operand(n.left, s)
	right := e.eval(n.right, s)
	e.line = n.line
	if t, ok := right.(string); ok && length >= 0 {
		length += int64(len(t))
		e.charge(length)
		e.parts = append(e.parts, t)
		return nil, length
	}
	if length >= 0 {
		left = e.joinParts(base)
	}
	return e.part(e.arithmetic("+", left, right))
}

// part appends a value to e.parts if it is text, and returns its length, else the value and -1.
func (e *execution) part(v any) (any, int64) {
	if t, ok := v.(string); ok {
		e.parts = append(e.parts, t)
		return nil, int64(len(t))
	}
	return v, -1
}

// concat evaluates operands joined by ~, appends their texts to e.parts and returns their length.
func (e *execution) concat(n *concatExpr, s *scope) int64 {
	e.charge(int64(len(n.parts)) * valueBytes)
	base := len(e.values)
	for _, part := range n.parts {
		e.values = append(e.values, e.eval(part, s))
	}
	length := int64(0)
	for _, v := range e.values[base:] {
		text := e.str(v)
		e.parts = append(e.parts, text)
		length += int64(len(text))
	}
	clear(e.values[base:])
	e.values = e.values[:base]
	e.charge(length)
	return length
}

// showJSON writes what the filter tojson makes.
func (e *execution) showJSON(n *filterExpr, s *scope) {
	e.enter()
	e.step(1)
	v := e.eval(n.of, s)
	a := e.takeArguments(&n.arguments, s)
	e.line = n.line
	e.enter()
	if n.fixed && e.shares(v) {
		e.write(e.sharedJSON(n, v, a))
		e.depth -= 2
		e.dropArguments(a)
		return
	}
	p := printer{e: e, out: e.text[:0], shown: e.out.top}
	e.toJSON(&p, v, a)
	e.depth -= 2
	e.dropArguments(a)
	e.text = p.out
	e.room(len(p.out))
	e.join(e.out)
	for _, m := range p.marks {
		m.At += len(e.out.data) - e.out.from
		e.trace.mark(m)
	}
	e.out.data = append(e.out.data, p.out...)
	e.out.marks = e.out.marks || e.template.marks && (bytes.IndexByte(p.out, markStart[0]) >= 0 ||
		bytes.IndexByte(p.out, markEnd[0]) >= 0)
}

// sharedJSON returns what the filter tojson makes of a value that executions share.
func (e *execution) sharedJSON(n *filterExpr, v any, a *arguments) string {
	key := jsonOf{v, n}
	if known, ok := e.json[key]; ok && e.left.Steps > known.steps && e.left.Bytes > known.bytes &&
		e.depth < maxCalls/2 {
		e.left.Bytes -= known.bytes
		e.step(known.steps)
		return known.text
	}
	before, depth := e.left, e.depth
	p := printer{e: e}
	e.toJSON(&p, v, a)
	text := string(p.out)
	if len(text) <= maxSharedJSON && depth < maxCalls/2 {
		if e.json == nil {
			e.json = map[jsonOf]jsonText{}
		}
		e.json[key] = jsonText{text, before.Steps - e.left.Steps, before.Bytes - e.left.Bytes}
	}
	return text
}
