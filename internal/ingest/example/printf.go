package example

import "reflect"

const (
	// plainBytes is the most that fmt adds to a value: brackets, separators, type names for %#v and
	// the text for wrong verbs.
	plainBytes = 48
	// quotedFactor is the maximum number of bytes that a byte of text becomes under %q, %x and %#v: "0x61 "
	// under "% #x".
	quotedFactor = 6
	// maxPad is the largest width or precision that fmt honours.
	maxPad = 1_000_000
)

// printfBound bounds the length of fmt.Sprintf's result for the format and arguments with these
// extents, and counts the verbs. It reads formats as fmt does; if arguments are chosen by index
// ("%[1]s"), each verb counts as the largest argument.
func printfBound(format string, args []any, parts []extent) (bytes, verbs int64) {
	f := formatScan{format: format, args: args, parts: parts}
	bytes = int64(len(format))
	for f.pos < len(format) {
		if format[f.pos] != '%' {
			f.pos++
			continue
		}
		f.pos++
		verbs++
		bytes += f.verb()
	}
	for _, p := range parts { // fmt appends unused arguments
		bytes += p.bytes + p.elements*plainBytes
	}
	return bytes, verbs
}

// formatScan walks through a format.
type formatScan struct {
	format  string
	pos     int
	args    []any
	parts   []extent
	next    int  // argument
	indexed bool // an argument was chosen by index: the order is no longer known
}

// verb bounds the output of the verb at pos, after its %.
func (f *formatScan) verb() int64 {
	sharp := false
	for f.pos < len(f.format) && (f.at() == '#' || f.at() == '0' || f.at() == '+' || f.at() == '-' || f.at() == ' ') {
		sharp = sharp || f.at() == '#'
		f.pos++
	}
	pad := f.number()
	if f.pos+1 < len(f.format) && f.at() == '.' { // at the end of the format, fmt takes it for a verb
		f.pos++
		pad += f.number()
	}
	f.index()
	if f.pos == len(f.format) {
		return plainBytes
	}
	kind := f.at()
	f.pos++
	if kind == '%' {
		return 1 + plainBytes // fmt may report a bad width
	}
	part := f.take()
	factor := int64(1)
	if sharp || kind == 'q' || kind == 'x' || kind == 'X' {
		factor = quotedFactor
	}
	return plainBytes + factor*part.bytes + part.elements*(pad+plainBytes)
}

func (f *formatScan) at() byte { return f.format[f.pos] }

// index skips "[n]".
func (f *formatScan) index() {
	if f.pos == len(f.format) || f.at() != '[' {
		return
	}
	f.indexed = true
	for i := f.pos; i < len(f.format); i++ {
		if f.format[i] == ']' {
			f.pos = i + 1
			return
		}
	}
	f.pos++
}

// number reads a width or a precision: digits, or an argument's value.
func (f *formatScan) number() int64 {
	f.index()
	if f.pos < len(f.format) && f.at() == '*' {
		f.pos++
		if f.indexed {
			return maxPad
		}
		if f.next >= len(f.args) {
			return 0
		}
		n := padOf(f.args[f.next])
		f.next++
		return n
	}
	n := int64(0)
	for f.pos < len(f.format) && '0' <= f.at() && f.at() <= '9' {
		n = min(10*n+int64(f.at()-'0'), maxPad)
		f.pos++
	}
	return n
}

// take returns the extent of the argument that a verb uses.
func (f *formatScan) take() (part extent) {
	if f.indexed {
		for _, p := range f.parts {
			part.bytes, part.elements = max(part.bytes, p.bytes), max(part.elements, p.elements)
		}
		return part
	}
	if f.next < len(f.parts) {
		part = f.parts[f.next]
	}
	f.next++
	return part
}

// padOf returns the padding for an argument that is a width or precision.
func padOf(arg any) int64 {
	var n int64
	switch v := reflect.ValueOf(arg); {
	case v.CanInt():
		n = v.Int()
	case v.CanUint():
		n = int64(min(v.Uint(), maxPad))
	}
	if n < 0 {
		n = max(n, -maxPad)
		n = -n
	}
	return min(n, maxPad)
}
