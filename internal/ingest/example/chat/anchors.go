package chat

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// Where a message stands in a text is found by anchors: characters that no conversation holds,
// written into its strings, each with a number. A text that was rendered with anchors says where
// each string went. If the text without its anchors is the text of the conversation, the template
// treats both alike, so that their places are those of the strings in that text.

// anchorLeads are the first bytes of the characters that anchors are made of: Tangut script, else
// private-use characters. The first are letters, so that they are never escaped.
var anchorLeads = [...]string{"\xf0\x97", "\xf3\xb0"}

const (
	// anchorBytes is the length of an anchor: two characters of four bytes, each with 12 bits.
	anchorBytes = 8
	maxAnchors  = 1 << 24
)

// place is a string of a message that may be anchored: at its beginning, after any white space, by
// anchor 2n, and at its end by 2n+1, where n is its number.
type place struct {
	message int
	kind    kindOfText
	foreign bool // nobody says it: it is outside of the assistant's turn
	text    string
	in      *jinja.Dict
	field   string
	list    *jinja.List // the list that holds it, in place of in, at item
	item    int
	part    *jinja.Dict // the part of a list that holds it; nil if none does
}

// set changes the string in its message.
func (p *place) set(s string) {
	if p.list != nil {
		p.list.Items[p.item] = s
	} else {
		p.in.Set(p.field, s)
	}
}

// kindOfText is what a string is, such as the content of what the user says.
type kindOfText struct{ role, key string }

func (k kindOfText) String() string { return k.role + " " + k.key }

// anchor is an anchor's place in a text without anchors.
type anchor struct {
	pos, id int
	stray   bool // it stands in what another message says, as the name of a call does in its result
}

// anchors is what a conversation's anchors show.
type anchors struct {
	lead   string
	places []place
	// anchored is how many anchors there is room for in a text, and written reports whether those that are used
	// are in the messages.
	anchored int
	written  bool
	used     []bool   // the anchors that do not change the text
	found    []anchor // where they are in the text, in order
	repeated bool     // some of them are in the text more than once
	first    []int    // the first of found for each message; -1 if there is none
	last     []int
}

// unanchored are the fields of messages whose strings have a meaning for templates or programs.
var unanchored = []string{"role", "id", "type", "tool_call_id", "call_id", "weight"}

// resultFields hold the results of tools in a message of the assistant.
var resultFields = []string{"tool_responses", "tool_results"}

// findPlaces lists the strings of the messages that may be anchored, at most most of them.
func (a *anchors) findPlaces(messages []*jinja.Dict, most int) {
	for i, m := range messages {
		before := len(a.places)
		for _, blank := range []bool{false, true} { // a blank string only where there is no other
			if len(a.places) == before {
				a.inMessage(i, m, blank)
			}
		}
		if len(a.places) > most {
			a.places = a.places[:before]
			break
		}
	}
	a.used = slices.Grow(a.used[:0], 2*len(a.places))[:2*len(a.places)]
	clear(a.used)
}

func (a *anchors) inMessage(i int, m *jinja.Dict, blank bool) {
	role, _ := get(m, "role").(string)
	for k := range m.Len() {
		key, value, ok := m.At(k)
		if !ok || slices.Contains(unanchored, key) {
			continue
		}
		p := place{message: i, kind: kindOfText{role, key}, foreign: slices.Contains(resultFields, key)}
		switch v := value.(type) {
		case string:
			p.in, p.field = m, key
			a.add(p, v, blank)
		case *jinja.List:
			if slices.ContainsFunc(v.Items, func(item any) bool { _, ok := item.(string); return ok }) {
				a.ends(p, v, blank)
				continue
			}
			for _, item := range v.Items {
				p.part, _ = item.(*jinja.Dict)
				a.ends(p, item, blank)
			}
		case *jinja.Dict:
			a.ends(p, v, blank)
		}
	}
}

func (a *anchors) add(p place, s string, blank bool) {
	if (strings.TrimSpace(s) == "") == blank {
		p.text = s
		a.places = append(a.places, p)
	}
}

// ends adds the first and the last string in a value; those between them lie between them in the
// text too.
func (a *anchors) ends(p place, v any, blank bool) {
	before := len(a.places)
	var walk func(v any)
	add := func(v any, in place) {
		s, ok := v.(string)
		if !ok {
			walk(v)
			return
		}
		p.in, p.field, p.list, p.item = in.in, in.field, in.list, in.item
		if a.add(p, s, blank); len(a.places) > before+2 {
			a.places = append(a.places[:before+1], a.places[len(a.places)-1])
		}
	}
	walk = func(v any) {
		switch v := v.(type) {
		case *jinja.List:
			for k := range v.Items {
				add(v.Items[k], place{list: v, item: k})
			}
		case *jinja.Dict:
			for k := range v.Len() {
				if key, value, ok := v.At(k); ok && !slices.Contains(unanchored, key) {
					add(value, place{in: v, field: key})
				}
			}
		}
	}
	walk(v)
}

// write writes the given anchors into the messages, and removes all others.
func (a *anchors) write(used []bool) {
	var b []byte
	for n := range a.places {
		p := &a.places[n]
		start, end := p.core()
		b = append(b[:0], p.text[:start]...)
		if used[2*n] {
			b = a.append(b, 2*n)
		}
		b = append(b, p.text[start:end]...)
		if used[2*n+1] {
			b = a.append(b, 2*n+1)
		}
		p.set(string(append(b, p.text[end:]...)))
	}
}

func (a *anchors) append(b []byte, id int) []byte {
	for _, bits := range []int{id >> 12, id & 0xfff} {
		b = append(append(b, a.lead...), 0x80|byte(bits>>6), 0x80|byte(bits&0x3f))
	}
	return b
}

// at returns the anchor at the beginning of a text, -1 if there is none.
func (a *anchors) at(text []byte) int {
	id := 0
	for range 2 {
		if len(text) < 4 || string(text[:2]) != a.lead {
			return -1
		}
		id = id<<12 | int(text[2]&0x3f)<<6 | int(text[3]&0x3f)
		text = text[4:]
	}
	if id >= len(a.used) {
		return -1
	}
	return id
}

// take removes the anchors from a text and returns them in order.
func (a *anchors) take(text []byte) (clean []byte, list []anchor) {
	clean = text[:0]
	for {
		n := bytes.Index(text, []byte(a.lead))
		if n < 0 || len(list) > 4*len(a.used) {
			return append(clean, text...), list
		}
		clean = append(clean, text[:n]...)
		if id := a.at(text[n:]); id >= 0 {
			list, text = append(list, anchor{pos: len(clean), id: id}), text[n+anchorBytes:]
		} else {
			clean, text = append(clean, text[n]), text[n+1:]
		}
	}
}

func (a *anchors) of(x anchor) *place { return &a.places[x.id/2] }

// own reports whether an anchor stands in what message i says.
func (a *anchors) own(x anchor, i int) bool {
	return a.of(x).message == i && !a.of(x).foreign && !x.stray
}

// findAnchors finds where the strings of the messages are in the text, and leaves the anchors in
// the messages, or pending.
func (j *rendering) findAnchors(text []byte) (err error) {
	if j.first != nil {
		return nil
	}
	j.allowed = int64(comparedFactor*len(text) + comparedBytes)
	a := &j.anchors
	for _, lead := range anchorLeads {
		if a.lead == "" && !bytes.Contains(text, []byte(lead)) {
			a.lead = lead
		}
	}
	if a.lead == "" {
		a.used = nil
	}
	j.anchored = len(a.used)
	if !j.anchorsOfTrace() {
		if err := j.tryAnchors(text); err != nil {
			return err
		}
	}
	slices.SortStableFunc(a.found, func(x, y anchor) int { return cmp.Compare(x.pos, y.pos) })
	a.first, a.last = make([]int, len(j.messages)), make([]int, len(j.messages))
	a.repeated = a.markStrays(a.found)
	for i := range a.first {
		a.first[i] = -1
	}
	for k, x := range a.found {
		i := a.of(x).message
		if !a.own(x, i) {
			continue
		}
		if a.last[i] = k; a.first[i] < 0 {
			a.first[i] = k
		}
	}
	return nil
}

// markStrays marks the anchors that are in a text more than once and do not stand in their own message: a message
// that comes before theirs follows them, or others are between them and the one in their message. It reports whether
// there are such that are in it more than once.
func (a *anchors) markStrays(found []anchor) (repeated bool) {
	times := make([]int, len(a.used))
	for _, x := range found {
		times[x.id]++
		repeated = repeated || times[x.id] > 1
	}
	if !repeated {
		return false
	}
	amid := make([]bool, len(found)) // something that an earlier message says, and once, follows
	earliest := math.MaxInt
	for k, x := range slices.Backward(found) {
		message := a.of(x).message
		if amid[k] = earliest < message; times[x.id] == 1 {
			earliest = min(earliest, message)
		}
	}
	home := make([]int, len(a.used)) // where each anchor last is in its message, from 1 on
	run := 0                         // where a row of one message's anchors begins
	for k, x := range found {
		if k > 0 && a.of(found[k-1]).message != a.of(x).message {
			run = k
		}
		switch h := home[x.id]; {
		case amid[k] && times[x.id] > 1, h > 0 && run > h-1:
			found[k].stray = true
			times[x.id]--
		default:
			home[x.id] = k + 1
		}
	}
	return true
}

// tryAnchors finds the anchors that do not change the text, and leaves them in the messages.
func (j *rendering) tryAnchors(text []byte) error {
	a := &j.anchors
	if len(a.used) == 0 {
		j.watch.Trace = nil
		return nil
	}
	ids := make([]int, len(a.used))
	for id := range ids {
		ids[id] = id
	}
	slices.SortStableFunc(ids, func(x, y int) int { // what a template treats alike stands together
		return cmp.Or(cmp.Compare(x&1, y&1), cmp.Compare(a.places[x/2].kind.String(), a.places[y/2].kind.String()))
	})
	if err := j.try(text, ids); err != nil {
		return err
	}
	a.write(a.used)
	a.written = true
	return nil
}

// try takes the given anchors if they do not change the text, else those of its halves that do not.
func (j *rendering) try(text []byte, ids []int) error {
	if len(ids) == 0 || j.spent > j.allowed {
		j.watch.Trace = nil
		return nil
	}
	a := &j.anchors
	used := make([]bool, len(a.used))
	for _, id := range ids {
		used[id] = true
	}
	a.write(used)
	all := len(ids) == len(a.used)
	if all {
		j.traceAnchored()
	}
	out, ok, err := j.rendered(j.after, j.messages, false)
	if j.after = out; err != nil {
		return err
	}
	if ok {
		var list []anchor
		if j.after, list = a.take(j.after); bytes.Equal(j.after, text) {
			a.found = append(a.found, list...)
			for _, id := range ids {
				a.used[id] = true
			}
			if all {
				j.takeAnchored(list)
			}
			return nil
		}
	}
	j.watch.Trace = nil
	if len(ids) == 1 {
		return nil
	}
	if err := j.try(text, ids[:len(ids)/2]); err != nil {
		return err
	}
	return j.try(text, ids[len(ids)/2:])
}
