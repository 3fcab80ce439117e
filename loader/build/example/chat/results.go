package chat

import (
	"bytes"
	"slices"

	"github.com/dsload/dsload/loader/build/example/chat/jinja"
)

// Some templates look ahead: they write the results of tools inside the assistant's turn that called
// them. Replacing the turn takes its calls away, and the results with them, so they seem to be the
// assistant's words. If a result is written twice, what appears twice is not the assistant's.

// withoutResults appends the span s of turn i without the results of tools in it.
func (j *rendering) withoutResults(dst []Span, text []byte, i int, s Span) ([]Span, error) {
	for k := i + 1; k < len(j.messages) && isResult(j.messages[k]); k++ {
		cut, ok, err := j.result(text, k)
		if err != nil {
			return dst, err
		}
		if ok && s.Start <= cut.Start && cut.End <= s.End {
			dst = append(dst, Span{Start: s.Start, End: cut.Start})
			s.Start = cut.End
		}
	}
	return append(dst, s), nil
}

func isResult(m *jinja.Dict) bool {
	switch get(m, "role") {
	case "assistant", "user", "system", "developer":
		return false
	}
	return true
}

// result finds message k as what appears twice if the message does. It must hold what changes with
// the content of the message.
func (j *rendering) result(text []byte, k int) (s Span, ok bool, err error) {
	marked := j.messages[k].Clone()
	marked.Set("content", turnMark+turnMarkEnd)
	messages := slices.Clone(j.messages)
	messages[k] = marked
	if j.after, ok, err = j.compare(j.after, messages, false); !ok || !bytes.Contains(j.after, []byte(turnMark)) {
		return s, false, err
	}
	content := commonPrefix(text, j.after)
	messages = slices.Insert(slices.Clone(j.messages), k, j.messages[k])
	if j.after, ok, err = j.compare(j.after, messages, false); !ok || len(j.after) <= len(text) {
		return s, false, err
	}
	s.End = commonPrefix(text, j.after)
	s.Start = s.End - (len(j.after) - len(text))
	if s.Start < 0 || !bytes.Equal(text[s.End:], j.after[s.End+s.End-s.Start:]) {
		return s, false, nil // more changes than this message
	}
	s = fromToken(s, text, content)
	return s, s.Start <= content && content <= s.End, nil
}

// fromToken moves a part of the text that could as well begin earlier, since it ends like what
// precedes it, to where it begins like a token before its content.
func fromToken(s Span, text []byte, content int) Span {
	for at := s; ; at.Start, at.End = at.Start-1, at.End-1 {
		if at.Start < content && text[at.Start] == '<' {
			return at
		}
		if at.Start == 0 || text[at.Start-1] != text[at.End-1] {
			break
		}
	}
	for s.Start > content && text[s.Start-1] == text[s.End-1] {
		s.Start, s.End = s.Start-1, s.End-1
	}
	return s
}
