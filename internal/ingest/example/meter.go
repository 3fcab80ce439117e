package example

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
	"text/template"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/lazy"
)

// The bounds of one execution of a template. They depend only on the record and the template, since
// a build's output must not depend on the memory cap.
const (
	// meterSteps is the number of nodes that an execution may visit: about a second's work.
	// loopSteps is added for each iteration of a loop, and callSteps for each call of a template,
	// for the cost of the meter and of text/template.
	meterSteps = 2 << 20
	loopSteps  = 4
	callSteps  = 10
	// meterStepsPerByte is added per byte of the record, so that a template can walk through a long
	// record.
	meterStepsPerByte = 8
	// meterBytes is the memory that an execution's strings may take, and meterPerByte is added per
	// byte of the record. The higher values apply if the template calls functions that make
	// strings.
	meterBytes       = 1 << 20
	meterPerByte     = 4
	meterPerByteText = 16
	// meterDepth bounds calls of templates within templates, each with the nesting of its body, and
	// so the stack.
	meterDepth = 1000

	// stepBytes is how much text is compared, or searched for white space, in the time of a step.
	stepBytes = 4 << 10
	// listEntryBytes and mapEntryBytes are the memory that fmt and range take per element: a map is
	// sorted first.
	listEntryBytes = 16
	mapEntryBytes  = 128
	// growth is the cost factor of a string that fmt builds by appending: the string and the
	// buffers that it outgrew.
	growth = 4
)

// A meter counts the cost of a template's execution. Package text/template can be neither
// interrupted nor bounded, so the parsed template is rewritten (see instrument) to call the meter
// at the start of each body, and each function that makes strings asks the meter first.
type meter struct {
	steps, bytes int64 // left
	depth        int   // left
	allowed      meterAllowance
	done         <-chan struct{} // closed when the execution is to stop
}

// meterAllowance is the initial allowance of an execution.
type meterAllowance struct{ steps, bytes int64 }

func (m *meter) begin(a meterAllowance) {
	m.allowed, m.steps, m.bytes, m.depth = a, a.steps, a.bytes, meterDepth
}

// funcs returns the functions of a template that are bound to this meter: ours, those of
// text/template that make strings, and those that instrument inserts, whose names no template uses.
func (m *meter) funcs() template.FuncMap {
	return template.FuncMap{
		"join": m.join, "trim": m.trim, "lower": m.fold(strings.ToLower), "upper": m.fold(strings.ToUpper),
		"print": m.print, "println": m.println, "printf": m.printf, "html": m.html, "js": m.js, "urlquery": m.urlquery,
		stepFunc: m.step, enterFunc: m.enter, leaveFunc: m.leave, shownFunc: m.shown, rangedFunc: m.ranged,
		weighedFunc: m.weighed,
	}
}

// step charges n nodes. It returns "", which prints nothing.
func (m *meter) step(n int64) (string, error) {
	select {
	case <-m.done:
		return "", ErrStopped
	default:
	}
	if m.steps -= n; m.steps < 0 {
		return "", fault.Of(ErrTooLarge, "the template takes more than %d steps for this record: "+
			"a loop or a template within it repeats too often", m.allowed.steps)
	}
	return "", nil
}

// enter charges the body of a template: its nodes, and its nesting until leave is called.
func (m *meter) enter(nodes int64, nesting int) (string, error) {
	if m.depth -= nesting; m.depth < 0 {
		return "", fault.Of(ErrTooLarge, "the template calls templates within templates more than %d levels deep: "+
			"one of them calls itself without an end", meterDepth)
	}
	return m.step(nodes)
}

func (m *meter) leave(nesting int) string {
	m.depth += nesting
	return ""
}

// room returns an error unless n more bytes may be taken.
func (m *meter) room(n int64) error {
	if n > m.bytes {
		return fault.Of(ErrTooLarge, "the template makes strings of more than %d bytes in all for this record: "+
			"printf, print, html and such repeat too often or pad too far",
			m.allowed.bytes)
	}
	return nil
}

func (m *meter) charge(n int64) error {
	if err := m.room(n); err != nil {
		return err
	}
	m.bytes -= n
	return nil
}

// extent is the size of a value: the number of values in it, itself included, and the bytes of
// their text.
type extent struct{ elements, entries, bytes int64 }

// floatBytes is the length of the longest text of a number that a template computes.
const floatBytes = 800

// measure returns the extent of a value. It takes a step for each value in it.
func (m *meter) measure(v any) (extent, error) {
	e := extent{elements: 1}
	add := func(of any) error {
		in, err := m.measure(of)
		e.elements, e.entries, e.bytes = e.elements+in.elements, e.entries+in.entries, e.bytes+in.bytes
		return err
	}
	var err error
	switch v := v.(type) {
	case nil, bool:
	case string:
		e.bytes = int64(len(v))
	case []string:
		e.elements += int64(len(v))
		for _, s := range v {
			e.bytes += int64(len(s))
		}
		_, err = m.step(int64(len(v)))
	case []any:
		for i := 0; i < len(v) && err == nil; i++ {
			err = add(v[i])
		}
	case map[string]any:
		e.entries = int64(len(v))
		for key, value := range v {
			e.elements, e.bytes = e.elements+1, e.bytes+int64(len(key))
			if err = add(value); err != nil {
				break
			}
		}
	default:
		e.bytes = floatBytes
		switch r := reflect.ValueOf(v); {
		case r.Kind() == reflect.String:
			e.bytes = int64(r.Len())
		case r.CanComplex():
			e.elements = 2 // fmt pads both parts
		}
	}
	if err == nil {
		_, err = m.step(1)
	}
	return e, err
}

// measureAll returns the total extent of a function's arguments. It returns errNull for a null,
// which would be printed as "<nil>".
func (m *meter) measureAll(args []any) (all extent, err error) {
	for _, arg := range args {
		if arg == nil {
			return all, errNull
		}
		e, err := m.measure(arg)
		if err != nil {
			return all, err
		}
		all.elements, all.entries, all.bytes = all.elements+e.elements, all.entries+e.entries, all.bytes+e.bytes
	}
	return all, nil
}

// formatted charges a string that fmt makes: bound bytes before it exists, its length afterwards.
func (m *meter) formatted(of extent, bound int64, format func() string) (string, error) {
	overhead := of.elements*listEntryBytes + of.entries*mapEntryBytes
	if err := m.room(overhead + growth*bound); err != nil {
		return "", err
	}
	s := format()
	m.bytes -= overhead + growth*int64(len(s))
	return s, nil
}

func (m *meter) print(args ...any) (string, error) {
	of, err := m.measureAll(args)
	if err != nil {
		return "", err
	}
	return m.formatted(of, of.bytes+of.elements*plainBytes, func() string { return fmt.Sprint(args...) })
}

func (m *meter) println(args ...any) (string, error) {
	of, err := m.measureAll(args)
	if err != nil {
		return "", err
	}
	return m.formatted(of, of.bytes+of.elements*plainBytes, func() string { return fmt.Sprintln(args...) })
}

func (m *meter) printf(format string, args ...any) (string, error) {
	parts, all := make([]extent, len(args)), extent{}
	for i, arg := range args {
		if arg == nil {
			return "", errNull
		}
		e, err := m.measure(arg)
		if err != nil {
			return "", err
		}
		parts[i] = e
		all.elements, all.entries = all.elements+e.elements, all.entries+e.entries
	}
	bound, verbs := printfBound(format, args, parts)
	if _, err := m.step(verbs + int64(len(format))/stepBytes); err != nil {
		return "", err
	}
	s, err := m.formatted(all, bound, func() string { return fmt.Sprintf(format, args...) })
	if err == nil && strings.Contains(s, "%!") {
		err = checkVerbs(format, s, args)
	}
	return s, err
}

// checkVerbs returns an error if s, made by printf, has one of fmt's complaints. The arguments may be texts
// about them.
func checkVerbs(format, s string, args []any) error {
	wrong := wrongVerb().FindString(s)
	if wrong == "" || wrongVerb().MatchString(fmt.Sprint(args...)) {
		return nil
	}
	return fault.Of(ErrTemplate, "printf %q would write %s…: give each value a verb that fits it; "+
		"texts and numbers of a record are printed with %%s", format, wrong)
}

// wrongVerb matches what fmt writes where a format and its arguments do not fit.
var wrongVerb = lazy.Regexp(`%!(.\(([\w.*{}\[\] ]+=|MISSING\)|BADINDEX\))|\((EXTRA |NOVERB|BADINDEX|BADWIDTH|BADPREC))`)

// text returns the text that html, js and urlquery escape: a single string, else the result of
// print for the arguments.
func (m *meter) text(args []any) (string, error) {
	if len(args) == 1 {
		if s, ok := args[0].(string); ok {
			_, err := m.step(int64(len(s)) / stepBytes)
			return s, err
		}
	}
	return m.print(args...)
}

func (m *meter) html(args ...any) (string, error) {
	return m.escaped(args, template.HTMLEscape)
}

func (m *meter) js(args ...any) (string, error) {
	return m.escaped(args, template.JSEscape)
}

// escaped runs an escaper twice: to count the bytes, and then to write into a buffer of that size.
func (m *meter) escaped(args []any, escape func(io.Writer, []byte)) (string, error) {
	s, err := m.text(args)
	if err != nil {
		return "", err
	}
	if err := m.charge(int64(len(s))); err != nil { // the copy that the escaper reads
		return "", err
	}
	data := []byte(s)
	var n countingWriter
	escape(&n, data)
	if err := m.charge(int64(n)); err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(int(n))
	escape(&b, data)
	return b.String(), nil
}

// countingWriter counts what is written.
type countingWriter int64

func (n *countingWriter) Write(p []byte) (int, error) {
	*n += countingWriter(len(p))
	return len(p), nil
}

func (m *meter) urlquery(args ...any) (string, error) {
	s, err := m.text(args)
	if err != nil {
		return "", err
	}
	if err := m.charge(6 * int64(len(s))); err != nil { // a byte becomes at most three, which are copied once
		return "", err
	}
	return url.QueryEscape(s), nil
}

func (m *meter) join(list []string, separator string) (string, error) {
	n := int64(len(list)) * int64(len(separator))
	for _, s := range list {
		n += int64(len(s))
	}
	if _, err := m.step(int64(len(list))); err != nil {
		return "", err
	}
	if err := m.charge(n); err != nil {
		return "", err
	}
	return strings.Join(list, separator), nil
}

func (m *meter) trim(s string) (string, error) {
	_, err := m.step(int64(len(s)) / stepBytes)
	return strings.TrimSpace(s), err
}

// fold bounds a change of case: a letter's other case may be a byte longer.
func (m *meter) fold(change func(string) string) func(string) (string, error) {
	return func(s string) (string, error) {
		if err := m.charge(growth * int64(len(s))); err != nil {
			return "", err
		}
		return change(s), nil
	}
}

// shown returns the value that an action is about to print. It charges for a list or a map, which
// is rendered as a whole before it is written.
func (m *meter) shown(v reflect.Value) (reflect.Value, error) {
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return v, errNull
	}
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Map || !v.CanInterface() {
		return v, nil
	}
	e, err := m.measure(v.Interface())
	if err != nil {
		return v, err
	}
	return v, m.charge(e.elements*listEntryBytes + e.entries*mapEntryBytes + growth*(e.bytes+e.elements*plainBytes))
}

// ranged returns the value that a loop is about to range over. It charges for the keys of a map,
// which are sorted first.
func (m *meter) ranged(v reflect.Value) (reflect.Value, error) {
	if !v.IsValid() || v.Kind() != reflect.Map {
		return v, nil
	}
	n := int64(v.Len())
	if _, err := m.step(n); err != nil {
		return v, err
	}
	return v, m.charge(n * mapEntryBytes)
}

// weighed returns a value that is about to be compared or looked up. It charges for the time that a
// long text takes.
func (m *meter) weighed(v reflect.Value) (reflect.Value, error) {
	if v.IsValid() && v.Kind() == reflect.String {
		_, err := m.step(int64(v.Len()) / stepBytes)
		return v, err
	}
	return v, nil
}
