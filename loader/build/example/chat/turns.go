package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/dsload/dsload/loader/build/example/chat/jinja"
)

// If a template does not mark what the assistant says, comparing texts finds it. Render the
// conversation before a turn with a generation prompt, and the conversation up to and including the
// turn: if the whole text begins with both, the turn is the difference. Some templates write a turn
// differently once others follow, such as those that drop a model's reasoning. For them the turn is
// replaced by another text, and the turn is what differs between the two results.

const (
	// comparedFactor and comparedBytes bound what is rendered for comparisons: beyond that, all
	// turns are found at once.
	comparedFactor = 16
	comparedBytes  = 4 << 20
)

// Replaced turns are numbered between two private-use characters, which the record's text must not
// contain.
const (
	turnMark    = "\U000FFF00"
	turnMarkEnd = "\U000FFF01"
)

// turns appends the spans of the assistant's turns in the text.
func (j *rendering) turns(dst []Span, text []byte) ([]Span, error) {
	var turns []int
	for i, m := range j.messages {
		if get(m, "role") == "assistant" && !j.untrained[i] {
			turns = append(turns, i)
		}
	}
	if j.r.opts.TrainOn == TrainLast && len(turns) > 0 {
		turns = turns[len(turns)-1:]
	}
	allowed := int64(comparedFactor*len(text) + comparedBytes)
	first, at := len(dst), 0 // where the previous turn ended
	for _, i := range turns {
		if j.spent > allowed || int64(len(turns))*int64(len(text)) > 4*allowed {
			return j.allTurns(dst[:first], text, turns)
		}
		s, ok, err := j.nested(text, i)
		if err == nil && ok {
			dst, at = append(dst, s), max(at, s.End)
			continue
		}
		if err == nil {
			s, ok, err = j.replaced(text, i, at)
		}
		if err == nil && ok { // else the text does not contain this turn
			dst, err = j.withoutResults(dst, text, i, s)
			at = max(at, s.End)
		}
		if err != nil {
			return dst, err
		}
	}
	return compact(dst), nil
}

// compact drops empty spans.
func compact(spans []Span) []Span {
	out := spans[:0]
	for _, s := range spans {
		if s.Start < s.End {
			out = append(out, s)
		}
	}
	return out
}

// compare renders messages for a comparison. A template may refuse a part of a conversation; then
// ok is false.
func (j *rendering) compare(dst []byte, messages []*jinja.Dict, prompt bool) (out []byte, ok bool, err error) {
	out, _, err = j.render(dst[:0], messages, prompt)
	j.spent += int64(len(out)) + 1<<10
	if err != nil && !errors.Is(err, ErrStopped) {
		return out, false, nil
	}
	return out, err == nil, err
}

// nested finds turn i as what it adds to the text of the earlier turns.
func (j *rendering) nested(text []byte, i int) (s Span, ok bool, err error) {
	if j.before, ok, err = j.compare(j.before, j.messages[:i], true); !ok || !bytes.HasPrefix(text, j.before) {
		return s, false, err
	}
	if j.after, ok, err = j.compare(j.after, j.messages[:i+1], false); !ok || !bytes.HasPrefix(text, j.after) {
		return s, false, err
	}
	s = Span{Start: len(j.before), End: len(j.after)}
	return s, s.Start < s.End, nil
}

// with returns the messages with replacements for the given turns.
func (j *rendering) with(turns []int) []*jinja.Dict {
	out := append([]*jinja.Dict(nil), j.messages...)
	for n, i := range turns {
		m := &jinja.Dict{}
		m.Set("role", "assistant")
		m.Set("content", fmt.Sprint(turnMark, n, turnMarkEnd))
		out[i] = m
	}
	return out
}

// replaced finds turn i as what differs when it is replaced. at is where the previous turn ended.
func (j *rendering) replaced(text []byte, i, at int) (s Span, ok bool, err error) {
	if bytes.Contains(text, []byte(turnMark)) {
		return s, false, nil
	}
	other, ok, err := j.compare(j.after, j.with([]int{i}), false)
	j.after = other
	if !ok || !bytes.Contains(other, []byte(turnMark)) {
		return s, false, err
	}
	s.Start = commonPrefix(text, other)
	s.End = len(text) - min(commonSuffix(text, other), len(text)-s.Start)
	s.End = max(s.End, s.Start)
	if s.Start < at {
		return s, false, nil
	}
	ending, err := j.ending(i)
	if err != nil {
		return s, false, err
	}
	s.End += sameEnding(text[s.End:], ending)
	prompt, err := j.prompt(i)
	if err != nil {
		return s, false, err
	}
	// What precedes the content of a turn, such as a block of reasoning, belongs to the assistant
	// too: everything after the generation prompt.
	if prompt != "" {
		if p := bytes.LastIndex(text[at:min(len(text), s.Start+len(prompt))], []byte(prompt)); p >= 0 {
			s.Start = min(s.Start, at+p+len(prompt))
		}
	}
	return s, s.Start < s.End, nil
}

// ending returns what follows the content of turn i when it is the last, "" if that is unknown.
func (j *rendering) ending(i int) (string, error) {
	only := j.with([]int{i})[:i+1]
	out, ok, err := j.compare(j.after, only, false)
	j.after = out
	if !ok {
		return "", err
	}
	p := bytes.LastIndex(out, []byte(turnMarkEnd))
	if p < 0 {
		return "", nil
	}
	return string(out[p+len(turnMarkEnd):]), nil
}

// prompt returns the generation prompt before turn i, "" if there is none.
func (j *rendering) prompt(i int) (string, error) {
	out, ok, err := j.compare(j.after, j.messages[:i], false)
	j.after = out
	if !ok {
		return "", err
	}
	without := len(out)
	prefix := string(out)
	out, ok, err = j.compare(j.after, j.messages[:i], true)
	j.after = out
	if !ok || !strings.HasPrefix(string(out), prefix) {
		return "", err
	}
	return string(out[without:]), nil
}

// sameEnding returns how much of an ending follows a turn. If the ending differs for turns that are
// not the last, it ends like a token: <|end|> instead of <|return|>.
func sameEnding(rest []byte, ending string) int {
	n := commonPrefix(rest, []byte(ending))
	if n == len(ending) {
		return n
	}
	ends := func(s string) int {
		if strings.HasPrefix(s, "<|") {
			if p := strings.Index(s, "|>"); p >= 0 && !strings.ContainsAny(s[:p], " \n") {
				return p + 2
			}
		}
		return 0
	}
	if n < ends(ending) {
		return ends(string(rest[:min(len(rest), 64)]))
	}
	return n
}

// allTurns finds all turns at once, for conversations too long to render again for each turn: it
// replaces every turn, and looks in the text for what is between them.
func (j *rendering) allTurns(dst []Span, text []byte, turns []int) ([]Span, error) {
	if bytes.Contains(text, []byte(turnMark)) {
		return dst, problemf(ErrTemplate, "the conversation holds the character U+%X, "+
			"by which the turns of a long conversation are found", []rune(turnMark)[0])
	}
	other, ok, err := j.compare(j.after, j.with(turns), false)
	j.after = other
	if err != nil {
		return dst, err
	}
	rest, at := string(other), 0
	first := len(dst)
	fail := func() ([]Span, error) {
		return dst[:first], problemf(ErrTooLarge,
			"the turns of the assistant, %d in a text of %d bytes, are too many to be found one by one, "+
				"and the chat template writes them otherwise once others follow", len(turns), len(text))
	}
	if !ok {
		return fail()
	}
	var endings []string
	for n := range turns {
		mark := fmt.Sprint(turnMark, n, turnMarkEnd)
		between, after, found := strings.Cut(rest, mark)
		if !found {
			return fail()
		}
		p := bytes.Index(text[at:], []byte(between))
		if n == 0 && p != 0 || p < 0 {
			return fail()
		}
		if n > 0 {
			dst[len(dst)-1].End = at + p
			endings = append(endings, between)
		}
		at += p + len(between)
		dst = append(dst, Span{Start: at, End: at})
		rest = after
	}
	if !bytes.HasSuffix(text[at:], []byte(rest)) {
		return fail()
	}
	dst[len(dst)-1].End = len(text) - len(rest)
	endings = append(endings, rest)
	ending, err := j.ending(turns[len(turns)-1])
	if err != nil {
		return dst, err
	}
	for n := range turns {
		dst[first+n].End += sameEnding([]byte(endings[n]), ending)
	}
	return compact(dst), nil
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
