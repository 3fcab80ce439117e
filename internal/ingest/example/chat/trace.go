package chat

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// Most templates write a string of a message as it is, or without the white space around it, and one message
// after the other. Of those one execution shows what others would give that are made for comparisons: where
// the strings went, so that none with anchors is needed, and where each message begins, so that the text of
// fewer messages is a part of the text. See jinja.Trace; where it does not know, others are made.

// traceMargin is how often an execution must fit into its limits for its trace to count, with what anchors add
// to it: what one that has them does at a limit is not known.
const traceMargin = 2

// fits reports whether an execution with anchors would be far from a limit, of which this one used that much.
// A string is taken to be made as often as others.
func fits(t *jinja.Trace, used, limit int64) bool {
	anchors := int64(2 * anchorBytes * len(t.Places)) // none if this one had them
	return used+used*anchors/int64(max(1, len(t.Text))) <= limit/traceMargin
}

// watch is the trace of a record's text.
type watch struct {
	*jinja.Trace
	next    *jinja.Trace // the next execution's
	text    []byte
	each    int  // anchors of a mark
	blank   bool // a string is empty but for anchors, which a template may ask for
	pending bool // the anchors that the trace shows are not in the messages yet
}

// prepareTrace makes a trace of the rendering, if there can be one: it puts the strings that may be anchored
// where the trace knows them.
func (j *rendering) prepareTrace() {
	if j.r.opts.TrainOn == TrainAll || !j.form.traceable || j.variables != nil && (has(j.variables, "messages") || has(j.variables, promptName)) {
		return
	}
	j.findPlaces(j.messages, j.mostPlaces())
	size := 0
	for i := range j.places {
		size += len(j.places[i].text)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range j.places {
		b.WriteString(j.places[i].text)
	}
	t := &j.Worker.trace
	t.Text, t.Places, t.Prompt = b.String(), t.Places[:0], promptName
	at := 0
	for i := range j.places {
		p := &j.places[i]
		end := at + len(p.text)
		start, stop := p.core()
		j.watch.blank = j.watch.blank || start == stop
		p.text = t.Text[at:end]
		p.set(p.text)
		t.Places = append(t.Places, jinja.Place{Start: at, Core: at + start, CoreEnd: at + stop, End: end})
		at = end
	}
	j.watch.Trace, j.watch.next = t, t
}

// mostPlaces returns how many strings may be anchored.
func (j *rendering) mostPlaces() int { return int(min(maxAnchors/2, 16+j.size/placeBytes)) }

// traceAnchored makes a trace of the next execution, which has anchors, instead.
func (j *rendering) traceAnchored() {
	if t := j.watch.Trace; t != nil {
		t.Text, t.Places, j.watch.next = "", t.Places[:0], t
	}
}

// takeAnchored takes the trace of a text from which these anchors were removed.
func (j *rendering) takeAnchored(list []anchor) {
	t := j.watch.Trace
	if t == nil {
		return
	}
	n := 0
	for i := range t.Begins {
		b := &t.Begins[i]
		for n < len(list) && list[n].pos+anchorBytes*n < b.At {
			n++
		}
		b.At, b.Marks = b.At-anchorBytes*n, n
	}
	j.watch.each = 1
	t.Local = t.Local && n == len(list) && !bytes.Contains(t.Tail, []byte(j.lead))
}

// core returns where the part of a string lies that anchors surround.
func (p *place) core() (start, end int) {
	start = len(p.text) - len(strings.TrimLeft(p.text, " \t\r\n"))
	return start, max(start, len(strings.TrimRight(p.text, " \t\r\n")))
}

// anchorsOfTrace takes the anchors from the trace, and reports whether it shows them.
func (j *rendering) anchorsOfTrace() (ok bool) {
	if t := j.watch.Trace; t == nil || j.lead == "" || j.watch.blank || len(j.places) != len(t.Places) {
		return false
	}
	if j.found, ok = j.shown(j.watch.Trace, j.watch.text); !ok {
		return false
	}
	for id := range j.used {
		j.used[id] = true
	}
	j.watch.pending, j.watch.each = true, 2
	return true
}

// shown returns the anchors that the trace of a text shows.
func (j *rendering) shown(t *jinja.Trace, text []byte) (list []anchor, ok bool) {
	if !t.Faithful || int64(len(text)+2*anchorBytes*len(t.Marks)) > j.outputBytes() {
		return nil, false
	}
	list = make([]anchor, 0, 2*len(t.Marks))
	for _, m := range t.Marks {
		n := t.PlaceOf(m.From)
		p := &t.Places[n]
		if m.From > p.Core || m.To < p.CoreEnd {
			return nil, false
		}
		core, coreEnd := p.Core-m.From, p.CoreEnd-m.From
		if m.Escaped {
			s := t.Text[m.From:m.To]
			core, coreEnd = jinja.EscapedLen(s[:core]), jinja.EscapedLen(s[:coreEnd])
		}
		list = append(list, anchor{pos: m.At + core, id: 2 * n}, anchor{pos: m.At + coreEnd, id: 2*n + 1})
	}
	j.spent += int64(len(text)+anchorBytes*len(list)) + comparedCost
	return list, true
}

// watched renders messages of the conversation whose anchors are pending, and takes them from a trace of that.
func (j *rendering) watched(dst []byte, messages []*jinja.Dict, prompt bool) (out []byte, list []anchor, ok bool,
	err error) {
	if !j.watch.pending {
		return dst, nil, false, nil
	}
	t := &j.Worker.other
	t.Text, t.Places, t.Prompt = j.watch.Text, j.watch.Places, promptName
	j.watch.next = t
	if out, _, err = j.render(dst[:0], messages, prompt); err != nil {
		if !errors.Is(err, ErrStopped) {
			err = nil
		}
		return out, nil, false, err
	}
	list, ok = j.shown(t, out)
	return out, list, ok, nil
}

// prefix returns what rendering some messages gives, if they are the first of the conversation and the trace
// shows it, and the anchors in it.
func (j *rendering) prefix(dst []byte, messages []*jinja.Dict, prompt bool) (out []byte, list []anchor, ok bool) {
	t := j.watch.Trace
	n := len(messages)
	if t == nil || !t.Local || n < max(t.Least, t.Base) || n > len(j.messages) || n-t.Base >= len(t.Begins) ||
		!slices.Equal(messages, j.messages[:n]) {
		return dst, nil, false
	}
	text, begin, end := j.watch.text, t.Begins[n-t.Base], t.Begins[len(t.Begins)-1]
	tail := text[end.At:]
	if prompt {
		tail = t.Tail
	}
	if int64(begin.At+len(tail)+2*anchorBytes*begin.Marks) > j.outputBytes() {
		return dst, nil, false
	}
	out = append(append(dst[:0], text[:begin.At]...), tail...)
	if j.watch.pending || j.written {
		list = j.found[:j.watch.each*begin.Marks]
	}
	j.spent += int64(len(out)+anchorBytes*len(list)) + comparedCost
	return out, list, true
}
