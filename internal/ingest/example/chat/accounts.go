package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// Every string that a message says is in the text, or it is known that the template leaves it out. What an
// execution wrote its trace shows. Where that does not know, a string is looked for; one that could be there by
// chance, or that is not found, gets anchors.

// claim is a part of a message's string, without the white space around it, that is to be in the text.
type claim struct {
	about
	found       bool
	guessed     bool // it was found by looking for it
	first, last bool // it begins, or ends, where an anchor of its place is
	place       int32
	start, stop int32 // in the place's text
	at, end     int32 // where it is in the text
}

type about uint8

const (
	words   about = iota // what is said
	thought              // a model's reasoning
	calling              // the call of a tool
)

// thoughtBegin and thoughtEnd are around a model's reasoning in a content.
const thoughtBegin, thoughtEnd = "<think>", "</think>"

// sureBytes is the length from which on a string is not in a text by chance: shorter ones are looked for as words
// that the template does not have.
const sureBytes = 16

// claim lists what is to be in the text, and reports whether what the trace of the text shows settles all of it.
func (j *rendering) claim() bool {
	if j.variables != nil && has(j.variables, "messages") {
		return true // others are written
	}
	if j.claims = j.claims[:0]; j.allSeen() || j.allInOrder() {
		return true // there is nothing to claim
	}
	if len(j.places) == 0 {
		j.findPlaces(j.messages, j.mostPlaces())
	}
	for n := range j.places {
		p := &j.places[n]
		start := len(p.text) - len(strings.TrimLeftFunc(p.text, isBlank))
		stop := max(start, len(strings.TrimRightFunc(p.text, isBlank)))
		if about, ok := p.about(); ok && start < stop {
			c := claim{about: about, first: true, last: true, place: int32(n), start: int32(start), stop: int32(stop)}
			if about == words && p.kind.role == "assistant" && strings.Contains(p.text, thoughtEnd) {
				j.claimBoth(c, strings.LastIndex(p.text, thoughtEnd))
			} else {
				j.claims = append(j.claims, c)
			}
		}
	}
	return j.seen() || !slices.ContainsFunc(j.claims, func(c claim) bool { return !c.found })
}

// allSeen reports whether the trace of the text shows each string of the messages whole and in their order, as it
// does of most templates.
func (j *rendering) allSeen() bool {
	t := j.watch.Trace
	if t == nil || len(t.Places) != len(j.places) {
		return false
	}
	marks := t.Marks
	for _, p := range t.Places {
		for p.Core < p.CoreEnd && (len(marks) == 0 || marks[0].From > p.Core || marks[0].To < p.CoreEnd) {
			if len(marks) == 0 || marks[0].From > p.Core {
				return false
			}
			marks = marks[1:]
		}
	}
	return len(t.Places) > 0
}

// allInOrder reports whether all that messages say which are nothing but words is in the text, each after the one
// before it. It is asked where every token is trained on: nothing else needs the places of their strings.
func (j *rendering) allInOrder() bool {
	if j.r.opts.TrainOn != TrainAll || len(j.places) > 0 {
		return false
	}
	rest := j.watch.text
	for _, m := range j.messages {
		s, isText := get(m, "content").(string)
		if s = strings.TrimFunc(s, isBlank); s == "" && isText && bare(m) {
			continue
		}
		n := -1
		if isText && bare(m) {
			n = j.wordsIn(rest, s)
		}
		if n < 0 {
			j.looked = 0
			return false
		}
		rest = rest[n+len(s):]
	}
	return true
}

// isBlank reports whether Python's strip removes a character.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// about returns what a string is about; ok is false if it says nothing.
func (p *place) about() (about about, ok bool) {
	switch key := p.kind.key; {
	case p.foreign:
		return 0, false
	case key == "content" && p.part == nil:
		return words, true
	case key == "content":
		kind, _ := get(p.part, "type").(string)
		if slices.Contains(reasoningFields, kind) {
			return thought, true
		}
		return words, kind != "text" || p.field == "text" && p.in == p.part
	case key == "tool_calls", key == "function_call":
		return calling, true
	default:
		return thought, slices.Contains(reasoningFields, key)
	}
}

// claimBoth adds the claims of a content in which reasoning ends at an offset: of that, and of the words after it.
func (j *rendering) claimBoth(c claim, at int) {
	text := j.text(&c)
	at -= int(c.start)
	before := strings.TrimFunc(strings.TrimPrefix(text[:at], thoughtBegin), isBlank)
	after := strings.TrimLeftFunc(text[at+len(thoughtEnd):], isBlank)
	if before != "" {
		from := c.start + int32(strings.Index(text, before))
		j.claims = append(j.claims, claim{about: thought, place: c.place, start: from, stop: from + int32(len(before))})
	}
	if after != "" {
		c.first, c.start = false, c.stop-int32(len(after))
		j.claims = append(j.claims, c)
	}
}

func (j *rendering) text(c *claim) string { return j.places[c.place].text[c.start:c.stop] }

// seen notes what the trace of the text shows of the claims, and reports whether that is all.
func (j *rendering) seen() (all bool) {
	t := j.watch.Trace
	if t == nil || len(t.Places) != len(j.places) {
		return false
	}
	for _, m := range t.Marks {
		n := int32(t.PlaceOf(m.From))
		from, to := int32(m.From-t.Places[n].Start), int32(m.To-t.Places[n].Start)
		k, _ := slices.BinarySearchFunc(j.claims, n, func(c claim, n int32) int { return cmp.Compare(c.place, n) })
		for ; k < len(j.claims) && j.claims[k].place == n; k++ {
			c := &j.claims[k]
			whole := from <= c.start && to >= c.stop
			if !c.found && (whole || c.about != thought && from < c.stop && to > c.start) {
				c.found, c.at, c.end = true, int32(m.At), int32(m.At)+to-from
			}
		}
	}
	return t.Faithful
}

// settle decides about the claims that the trace does not show.
func (j *rendering) settle(text []byte) error {
	if j.first == nil && j.inOrder(text) {
		return nil
	}
	if err := j.findAnchors(text); err != nil {
		return err
	}
	written := make([]bool, len(j.used))
	for _, x := range j.found {
		written[x.id] = true
	}
	for i := range j.claims {
		c := &j.claims[i]
		if c.found {
			continue
		}
		id := 2 * int(c.place)
		known := id < len(written) && (c.first || c.last) // whether it is in the text
		if known {
			c.found = c.first && written[id] || c.last && written[id+1]
			known = (!c.first || j.used[id]) && (!c.last || j.used[id+1])
		}
		c.found = c.found || !known && j.index(text, j.text(c)) >= 0
	}
	return nil
}

// inOrder looks for the claims, each after the one before it, and reports whether all that is said is found.
func (j *rendering) inOrder(text []byte) bool {
	next := int32(len(text)) // where the next begins that is known to be in the text
	for i := len(j.claims) - 1; i >= 0; i-- {
		if c := &j.claims[i]; c.found {
			next = c.at
		} else {
			c.at = next
		}
	}
	at := 0
	for i := range j.claims {
		c := &j.claims[i]
		switch s := j.text(c); {
		case c.found:
		case c.about == thought: // earlier ones are left out as a rule
			c.found = j.index(text, s) >= 0
			c.guessed = c.found
		default:
			if n := j.wordsIn(text[at:max(at, int(c.at))], s); n >= 0 {
				c.found, c.guessed, c.end = true, true, int32(at+n+len(s))
			}
		}
		if at = max(at, int(c.end)); !c.found && c.about != thought {
			for i := range j.claims {
				j.claims[i].found = j.claims[i].found && !j.claims[i].guessed
			}
			return false
		}
	}
	return true
}

// wordsIn is index for words, of which short ones may be the template's.
func (j *rendering) wordsIn(text []byte, s string) int {
	if len(s) >= sureBytes {
		return j.index(text, s)
	}
	n := wordIn(text, s)
	if n >= 0 && wordIn(j.form.source, s) >= 0 {
		return -1
	}
	return n
}

// index returns where a string is in a text, as it is or in JSON, -1 if it is not. If very much was looked for, it
// is taken to be there.
func (j *rendering) index(text []byte, s string) int {
	if j.looked > comparedFactor*len(j.watch.text)+comparedBytes {
		return 0
	}
	n := strings.Index(values.View(text), s)
	if n < 0 {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err == nil && b.Len() > len(s)+len("\"\"\n") {
			n = bytes.Index(text, b.Bytes()[1:b.Len()-2])
		}
	}
	if j.looked += n; n < 0 {
		j.looked += len(text)
	}
	return n
}

// account notes what the template leaves out, and returns the messages whose words it leaves out.
func (j *rendering) account(t *Losses, text []byte) (lost []int) {
	called := false
	for i := 0; i < len(j.claims); {
		var claims, found [calling + 1]int
		message := j.places[j.claims[i].place].message
		for ; i < len(j.claims); i++ {
			c := &j.claims[i]
			if j.places[c.place].message != message {
				break
			}
			claims[c.about]++
			if c.found {
				found[c.about]++
			}
		}
		if claims[thought] > 0 && found[thought] == 0 {
			t.ThoughtsLeftOut++
		}
		called = called || found[calling] > 0
		t.ToolsLeftOut = t.ToolsLeftOut || claims[calling] > 0 && found[calling] == 0
		switch {
		case found[words] == claims[words]:
		case found[calling] > 0:
			t.BesideCalls++
		default:
			lost = append(lost, message)
		}
	}
	if tools, ok := j.tools.(*jinja.List); ok {
		t.ToolsLeftOut = t.ToolsLeftOut || slices.ContainsFunc(tools.Items, func(tool any) bool {
			return !j.defines(text, tool)
		})
	}
	if t.ToolsLeftOut && !called { // the template knows no tools
		lost = slices.DeleteFunc(lost, func(i int) bool { return get(j.messages[i], "role") == "tool" })
	}
	return lost
}

// defines reports whether a text has the definition of a tool. Calls have its name, too, and a system message may
// define it where the template does not.
func (j *rendering) defines(text []byte, tool any) bool {
	d, _ := tool.(*jinja.Dict)
	if d == nil {
		return true
	}
	function, inside := get(d, "function").(*jinja.Dict)
	if inside {
		d = function
	}
	name, _ := get(d, "name").(string)
	if wordIn(text, name) < 0 || j.habits().definesTools(inside) {
		return wordIn(text, name) >= 0
	}
	description, _ := get(d, "description").(string)
	return description != "" && j.index(text, description) >= 0
}

// wordIn returns where a text has a string that is not part of a longer word, -1 if it has none.
func wordIn(text []byte, s string) int {
	for at := 0; ; at++ {
		n := strings.Index(values.View(text[at:]), s)
		if n < 0 || s == "" {
			return n
		}
		at += n
		before, _ := utf8.DecodeLastRune(text[:at])
		after, _ := utf8.DecodeRune(text[at+len(s):])
		if !isWord(before) && !isWord(after) {
			return at
		}
	}
}
