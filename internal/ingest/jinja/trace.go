package jinja

import (
	"unsafe"
)

// A Trace shows what of the messages an execution wrote where, and whether fewer messages would have given
// the beginning of its text. It is found by watching one execution: what is not known to be so makes the
// result false, never wrong.
//
// A string is known by where its bytes lie. Whatever is done with one must either be the same with its core
// unchanged and something put before and after the core, or be told to touch.
type Trace struct {
	// Given.
	Text     string  // the traced strings are parts of it, and no others
	Places   []Place // the traced strings, in the order of Text
	Messages *List
	Prompt   string // the variable that asks for a generation prompt, which is false

	// Faithful reports whether the text would be the same, but for them, if each core had letters before and
	// after it that nothing else has; they would stand where Marks says.
	Faithful bool
	Marks    []Mark // in the order of the text; those of what was written in any case, but not where if not Faithful

	// Local reports whether the text of the first n messages, for any n from Least on, is what the text holds
	// up to Begins[n-Base], and then the rest of the text, or Tail if Prompt is true.
	Local       bool
	Least, Base int
	Begins      []Begin // where each message from Base on begins, and where the last one ends
	Tail        []byte

	made    made
	windows []sublist
	current int // the message whose turn it is in the loop, -1 for none
	main    bool
	empty   bool // a length is taken to see whether it is 0
	looped  bool // the loop over the messages has ended
	again   bool // what follows the loop is run a second time
}

// A Place is a traced string: Text[Start:End], of which Text[Core:CoreEnd] is the core.
type Place struct{ Start, Core, CoreEnd, End int }

// A Mark is Text[From:To] in the text at At. In a JSON string it is Escaped.
type Mark struct {
	At, From, To int
	Escaped      bool
}

// A Begin is an offset in the text, and how many marks are before it.
type Begin struct{ At, Marks int }

// sublist is the list of the messages from one on.
type sublist struct {
	list *List
	base int
}

func (t *Trace) start(template *Template) {
	t.Faithful, t.Local = !template.marks, !template.marks
	t.Marks, t.Begins, t.Tail, t.Least, t.Base = t.Marks[:0], t.Begins[:0], t.Tail[:0], 0, 0
	t.windows = append(t.windows[:0], sublist{t.Messages, 0})
	t.made.reset()
	t.current = -1
	t.main, t.looped, t.again, t.empty = false, false, false, false
}

// find returns where a string lies in Text, -1 if it is not part of it.
func (t *Trace) find(s string) int { return offset(unsafe.StringData(t.Text), len(t.Text), s) }

// windowOf returns from which message on a list holds the messages, -1 if it is another list.
func (t *Trace) windowOf(v any) int {
	if list, ok := v.(*List); ok {
		for i := range t.windows {
			if t.windows[i].list == list {
				return t.windows[i].base
			}
		}
	}
	return -1
}

// touch notes that something is done with values that may depend on each of their bytes or items.
func (e *execution) touch(values ...any) {
	if e.trace == nil {
		return
	}
	for _, v := range values {
		switch v := v.(type) {
		case nil, bool, int64, float64, *undefined:
		case string:
			e.touchText(v)
		case markup:
			e.touchText(string(v))
		default:
			e.trace.Faithful = false
			e.asWhole(v)
		}
	}
}

func (e *execution) touchText(s string) {
	if e.trace != nil && e.trace.traced(s) {
		e.trace.Faithful = false
	}
}

func (e *execution) touchArguments(a *arguments) {
	if e.trace == nil {
		return
	}
	e.touch(a.positional...)
	for i := range a.named.entries {
		e.touch(a.named.entries[i].value)
	}
}

// asWhole notes that a value is used as a whole, with its length and all of its items.
func (e *execution) asWhole(v any) {
	if e.trace != nil && e.trace.windowOf(v) >= 0 {
		e.trace.Local = false
	}
}

// indexed notes that an item of a list is taken, or looked for.
func (e *execution) indexed(v any, i int64) {
	if e.trace == nil {
		return
	}
	if base := e.trace.windowOf(v); base >= 0 {
		if i < 0 {
			e.trace.Local = false
		} else if k := base + int(min(i, 1<<30)); k > e.trace.current {
			e.trace.Least = max(e.trace.Least, k+1)
		}
	}
}

// sliced notes that a list is sliced from one item on, to the end if open.
func (e *execution) sliced(v any, from int64, open bool, result *List) {
	if e.trace == nil {
		return
	}
	if base := e.trace.windowOf(v); base >= 0 {
		if !open || from < 0 || from > 1<<30 {
			e.trace.Local = false
			return
		}
		base += int(from)
		e.trace.Least = max(e.trace.Least, base)
		e.trace.windows = append(e.trace.windows, sublist{result, base})
	}
}

// isTrue is like the function isTrue, for a value that may be a list of messages.
func (e *execution) isTrue(v any) bool {
	if e.trace != nil {
		e.tested(v)
	}
	return isTrue(v)
}

// tested notes that it matters whether a list is empty.
func (e *execution) tested(v any) {
	if base := e.trace.windowOf(v); base >= 0 && len(v.(*List).Items) > 0 {
		e.trace.Least = max(e.trace.Least, base+1)
	}
}

// measured notes that the length of a list is taken.
func (e *execution) measured(v any) {
	switch {
	case e.trace == nil:
	case e.trace.empty:
		e.tested(v)
	default:
		e.asWhole(v)
	}
}

// stateful notes that a value is read that the loop over the messages may have changed.
func (e *execution) stateful() {
	if e.trace != nil && e.trace.looped {
		e.trace.Local = false
	}
}

// kept notes what became of a string of which only what surrounds the core may be cut off.
func (e *execution) kept(s, result string) {
	if e.trace == nil {
		return
	}
	from := offset(unsafe.StringData(s), len(s), result)
	for _, m := range e.trace.marksIn(s, 0) {
		start, end := e.trace.core(m)
		e.trace.Faithful = e.trace.Faithful && from >= 0 && start >= max(m.At, from) && end <= min(m.end(), from+len(result))
	}
}

// tracedMethods lists the methods of strings that say what they do with one.
var tracedMethods = map[string]bool{"strip": true, "lstrip": true, "rstrip": true, "split": true, "rsplit": true,
	"replace": true, "startswith": true, "endswith": true}

// method notes that a method of a string is called.
func (e *execution) method(name, s string, a *arguments) {
	if e.trace == nil {
		return
	}
	e.touchArguments(a)
	if !tracedMethods[name] {
		e.touchText(s)
	}
}

// tracedFilters lists the filters that say what they do with a string, or take items as they are.
var tracedFilters = map[string]bool{"default": true, "d": true, "length": true, "count": true, "items": true,
	"tojson": true, "trim": true, "string": true, "safe": true, "replace": true, "first": true, "last": true,
	"list": true, "select": true, "reject": true, "selectattr": true, "rejectattr": true, "map": true}

// filtering notes that a filter is applied.
func (e *execution) filtering(name string, v any, a *arguments) {
	if e.trace == nil {
		return
	}
	e.touchArguments(a)
	if !tracedFilters[name] {
		e.touch(v)
	}
}

// counted notes that it matters how many items a loop has.
func (l *loop) counted(e *execution) {
	if l.main {
		e.trace.Local = false
	}
}

// PlaceOf returns which place an offset in Text is in.
func (t *Trace) PlaceOf(at int) int {
	low, high := 0, len(t.Places)
	for high-low > 1 {
		if middle := (low + high) / 2; t.Places[middle].Start <= at {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// wrote notes that text is about to be written.
func (t *Trace) wrote(o *output, s string) {
	if !t.holds(s) {
		return
	}
	if !o.top {
		o.traced = t.appendMarks(o.traced, s, len(o.data))
		return
	}
	for _, m := range t.marksIn(s, len(o.data)-o.from) {
		t.mark(m)
	}
}

func (t *Trace) mark(m Mark) {
	if t.looped { // what follows the messages depends on one
		t.Local = false
	}
	if t.again {
		return
	}
	if len(t.Marks) == marksPerPlace*len(t.Places) {
		t.Faithful = false
		return
	}
	t.Marks = append(t.Marks, m)
}

// marksPerPlace bounds the marks: as many on average.
const marksPerPlace = 2

// Forget drops what the trace refers to.
func (t *Trace) Forget() {
	clear(t.windows)
	*t = Trace{Places: t.Places[:0], Marks: t.Marks[:0], Begins: t.Begins[:0], Tail: t.Tail[:0],
		windows: t.windows[:0], made: t.made}
	if cap(t.Places)+cap(t.Marks)+cap(t.Begins)+cap(t.windows)+cap(t.made.marks)+cap(t.made.spare) > keptScratch ||
		cap(t.Tail)+cap(t.made.text) > keptText {
		*t = Trace{}
	}
}

// EscapedLen returns the length of a string in JSON, without its quotes, where it is not ASCII that is wanted.
func EscapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\' || b >= '\b' && b <= '\r' && b != '\v':
			n++
		case b < ' ':
			n += 5
		}
	}
	return n
}
