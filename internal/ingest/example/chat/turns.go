package chat

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// If a template does not mark what the assistant says, comparing texts finds it. A turn begins
// where the generation prompt ends in the text of the messages before it, and ends where the text
// ends whose last message it is. Many templates write earlier messages differently once others
// follow: they drop a model's reasoning, or move the tools to the last question. So the texts are
// compared from an anchor that both have (see anchors) up to where they differ: what follows the
// message before the turn, and what follows the turn's last words.

const (
	// comparedFactor and comparedBytes bound what is rendered for comparisons: beyond that, turns
	// are taken to begin and end like earlier ones.
	comparedFactor = 16
	comparedBytes  = 4 << 20
	comparedCost   = 1 << 10 // the cost of a comparison
)

// finder finds the turns of one text.
type finder struct {
	*rendering
	text   []byte
	starts map[kind]string // what led to a turn, by what was before it
	ends   map[kind]string // what ended a turn, by what was last in it
	others map[string]bool // whether a tag ends what others say
	frame
}

// turns finds the spans of the assistant's turns in the text.
func (j *rendering) turns(t *Text) (err error) {
	turns := j.turnsToTrain()
	if len(turns) == 0 {
		return nil
	}
	if len(turns) == 1 {
		if s, ok, err := j.onlyLast(t.Text, turns[0]); ok || err != nil {
			t.Spans = append(t.Spans, s)
			return err
		}
	}
	if err := j.findAnchors(t.Text); err != nil {
		return err
	}
	f := &finder{rendering: j, text: t.Text, starts: map[kind]string{}, ends: map[kind]string{},
		others: map[string]bool{}, frame: j.habits().frame()}
	at := 0 // where the previous turn ended
	for _, i := range turns {
		before := len(t.Spans)
		if t.Spans, err = f.turn(t.Spans, i, at); err != nil {
			return err
		}
		if len(t.Spans) == before {
			t.miss(j.number(i))
			continue
		}
		at = t.Spans[len(t.Spans)-1].End
	}
	return nil
}

// miss counts a turn that was not found, of the message with a number.
func (t *Text) miss(number int) {
	if t.Unfound++; t.Unfound == 1 {
		t.FirstUnfound = number
	}
}

// onlyLast finds the last message, if it is all that is trained on, as what follows the text of the
// messages before it.
func (j *rendering) onlyLast(text []byte, i int) (s Span, ok bool, err error) {
	around := j.habits().frame()
	if i != len(j.messages)-1 || j.withResults(i) || around.opening != "" {
		return s, false, nil
	}
	j.before, _, ok, err = j.marked(j.before, j.messages[:i], true)
	start, end := len(j.before), len(text)
	if !ok || start >= end || !bytes.HasPrefix(text, j.before) || i > 0 && !around.leads(j.before, j.messages[i-1]) {
		return s, false, err
	}
	if said := j.afterEmpty(text, i, start, end); len(bytes.TrimSpace(text[said:end])) > 0 { // else that ends the turn
		start = said
	}
	return Span{Start: start, Said: end, End: end}, true, nil
}

// withResults reports whether a message of the assistant holds results of tools.
func (j *rendering) withResults(i int) bool {
	return slices.ContainsFunc(resultFields, func(field string) bool { return has(j.messages[i], field) })
}

// rendered renders messages for a comparison. A template may refuse a part of a conversation; then ok is false.
func (j *rendering) rendered(dst []byte, messages []*jinja.Dict, prompt bool) (out []byte, ok bool, err error) {
	if j.watch.pending {
		j.write(j.used)
		j.watch.pending, j.written = false, true
	}
	out, _, err = j.render(dst[:0], messages, prompt)
	j.spent += int64(len(out)) + comparedCost
	if err != nil && !errors.Is(err, ErrStopped) {
		return out, false, nil
	}
	return out, err == nil, err
}

// turn appends the spans of turn i, which begins at or after at; none if it is not found.
func (f *finder) turn(dst []Span, i, at int) ([]Span, error) {
	start, err := f.start(i, at)
	if err != nil || start < 0 {
		return dst, err
	}
	if k := f.first[i]; k < 0 {
		if i > 0 && !f.leads(f.text[:start], f.messages[i-1]) {
			start += f.skip(f.text[start:])
		}
	} else {
		limit := max(start, f.found[k].pos)
		start += f.afterHeader(f.text[start:limit])
		start = f.afterEmpty(f.text, i, start, limit)
		if i == len(f.messages)-1 && !f.withResults(i) {
			last := f.found[f.last[i]]
			end := last.pos + len(f.ending(string(f.text[last.pos:])))
			return appendSpan(dst, start, end, end), nil
		}
		last, alone := f.run(i)
		end, known := f.ends[f.kind(last)]
		if alone && (f.spent > f.allowed && known || strings.TrimSpace(end) != "" && f.follows(last, end)) {
			return appendSpan(dst, start, last.pos, f.end(last, end)), nil
		}
	}
	return f.compared(dst, i, start)
}

func appendSpan(dst []Span, start, said, end int) []Span {
	if start < end {
		dst = append(dst, Span{Start: start, Said: said, End: end})
	}
	return dst
}

// kind is what an anchor is, for texts that are alike where the kind is.
type kind struct {
	kindOfText
	end   bool // the anchor is at the end of the string
	calls bool // the message calls tools
}

func (f *finder) kind(x anchor) kind {
	p := f.of(x)
	return kind{p.kind, x.id&1 == 1, has(f.messages[p.message], "tool_calls")}
}

var noKind kind

// run returns the last of turn i's first anchors in a row, and whether they are all of its anchors.
func (f *finder) run(i int) (last anchor, alone bool) {
	k := f.first[i]
	for k+1 < len(f.found) && f.own(f.found[k+1], i) {
		k++
	}
	return f.found[k], k == f.last[i] && !f.withResults(i)
}

func (f *finder) follows(x anchor, text string) bool {
	return bytes.HasPrefix(f.text[x.pos:], []byte(text))
}

// rest returns what follows an anchor up to the next one elsewhere in the text.
func (f *finder) rest(x anchor) string {
	for k := f.indexOf(x) + 1; k < len(f.found); k++ {
		if f.found[k].pos > x.pos {
			return string(f.text[x.pos:f.found[k].pos])
		}
	}
	return string(f.text[x.pos:])
}

// indexOf returns the place of an anchor among those of the text.
func (f *finder) indexOf(x anchor) int {
	n, _ := slices.BinarySearchFunc(f.found, x.pos, func(a anchor, pos int) int { return a.pos - pos })
	for n < len(f.found) && f.found[n] != x {
		n++
	}
	return n
}

// marked renders messages that hold anchors, and returns the text without them.
func (j *rendering) marked(dst []byte, messages []*jinja.Dict, prompt bool) ([]byte, []anchor, bool, error) {
	if out, list, ok := j.prefix(dst, messages, prompt); ok {
		return out, list, true, nil
	}
	out, list, ok, err := j.watched(dst, messages, prompt)
	if !ok && err == nil {
		out, list, ok, err = j.anchoredText(dst, messages, prompt)
	}
	if j.repeated {
		j.markStrays(list)
	}
	return out, list, ok, err
}

// anchoredText is marked without traces.
func (j *rendering) anchoredText(dst []byte, messages []*jinja.Dict, prompt bool) ([]byte, []anchor, bool, error) {
	out, ok, err := j.rendered(dst, messages, prompt)
	if !ok || j.lead == "" {
		return out, nil, ok, err
	}
	out, list := j.take(out)
	return out, list, true, nil
}

// start returns where turn i begins, -1 if it is not found.
func (f *finder) start(i, at int) (int, error) {
	limit, from, follows := len(f.text), at, noKind
	if k := f.first[i]; k >= 0 {
		limit = f.found[k].pos
		if k > 0 {
			from = max(at, f.found[k-1].pos)
			follows = f.kind(f.found[k-1])
		}
	}
	if limit < at {
		return -1, nil
	}
	lead, known := f.starts[follows]
	if follows != noKind && f.of(f.found[f.first[i]-1]).message < i-1 {
		follows = noKind // a message without words is between them
	}
	if follows != noKind && lead != "" && f.found[f.first[i]-1].pos == from &&
		bytes.HasPrefix(f.text[from:limit], []byte(lead)) {
		return from + len(lead), nil
	}
	if f.spent > f.allowed {
		if !known || f.first[i] < 0 {
			return -1, nil
		}
		return f.led(lead, from, from, limit), nil
	}
	before, list, ok, err := f.marked(f.before, f.messages[:i], true)
	f.before = before
	if err != nil {
		return -1, err
	}
	if ok && bytes.HasPrefix(f.text, before) && len(before) >= at && len(before) <= limit {
		if n := len(list); n > 0 && follows != noKind && list[n-1].id == f.found[f.first[i]-1].id {
			f.starts[follows] = string(before[list[n-1].pos:])
		}
		return len(before), nil
	}
	if f.first[i] < 0 {
		return -1, nil
	}
	if !ok {
		if n := f.afterHeader(f.text[from:limit]); n > 0 {
			return from + n, nil
		}
		return limit, nil
	}
	if len(list) == 0 {
		return f.led(string(before), 0, from, limit), nil
	}
	return f.ledBy(i, before, list[len(list)-1], from, limit, follows), nil
}

// ledBy is led by the text from the last anchor of what was rendered before turn i, which follows another.
func (f *finder) ledBy(i int, before []byte, last anchor, from, limit int, follows kind) int {
	lead, common := string(before[last.pos:]), from
	for k := f.first[i] - 1; k >= 0; k-- {
		if f.found[k].id == last.id {
			common = f.found[k].pos
			break
		}
	}
	if follows != noKind && common == from {
		f.starts[follows] = lead
	}
	return f.led(lead, common, from, limit)
}

// led returns where a turn begins whose first anchor is at limit, and that follows what common
// begins with, or the generation prompt. It begins at or after from.
func (f *finder) led(lead string, common, from, limit int) int {
	n := commonStart(lead, string(f.text[common:limit]))
	start := max(from, common+n)
	if n < len(lead) {
		start = max(start, from+f.afterHeader(f.text[from:limit]))
	}
	return min(start, limit)
}

// blocks sets the spans of generation blocks, without those of messages that are not trained on.
func (j *rendering) blocks(t *Text, blocks []jinja.Span) error {
	all := !slices.Contains(j.untrained, true)
	if !all {
		if err := j.findAnchors(t.Text); err != nil {
			return err
		}
	}
	k, message := 0, -1 // the last words of the assistant up to the end of a block
	for _, s := range blocks {
		for ; k < len(j.found) && j.found[k].pos <= s.End; k++ {
			if i := j.of(j.found[k]).message; get(j.messages[i], "role") == "assistant" {
				message = i
			}
		}
		if !all && message < 0 {
			t.miss(1)
		} else if all || !j.untrained[message] {
			t.Spans = append(t.Spans, Span{Start: s.Start, Said: s.End, End: s.End})
		}
	}
	return nil
}
