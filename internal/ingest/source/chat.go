package source

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/jsonscan"
)

// chatLists are the fields that hold a conversation, as a list of messages.
var chatLists = []string{"messages", "conversations", "conversation", "dialog", "dialogue", "chat", "contents",
	"chosen"}

// isJSONChat is isChat for the first element of an array, or the first of objects over several lines.
func isJSONChat(text []byte, field string) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	list, hasText, _ := chatFields(bytes.TrimPrefix(text, []byte("[")), cmp.Or(field, "text"))
	return list && !hasText
}

// isChat reports whether the first whole JSON line holds a list of messages: objects with a role,
// or with ShareGPT's from. A record that has the text field is text. Records of strings, such as a
// question and its answer, are read as conversations only on request.
func isChat(text []byte, field string) bool {
	field = cmp.Or(field, "text")
	for i := 0; i < triedLines && len(text) > 0; i++ {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !frame.IsBlank(line) {
			list, hasText, whole := chatFields(line, field)
			if whole || !found {
				return list && !hasText
			}
		}
		text = rest
	}
	return false
}

// chatFields looks at the fields of a line, which may be cut off: whether one is a list of
// messages, and whether the text field is there. whole reports whether all of the line is an
// object with fields.
func chatFields(line []byte, field string) (list, hasText, whole bool) {
	var s jsonscan.Scanner
	some := false
	s.Reset(line)
	err := s.Members(func(key []byte) error {
		is := func(name string) bool { return string(key) == name }
		first, value := s.Token(), s.Rest()
		some = true
		hasText = hasText || first == '"' && is(field)
		list = list || slices.ContainsFunc(chatLists, is) && beginsMessages(value)
		return s.Skip()
	})
	return list, hasText, some && err == nil
}

// beginsMessages reports whether a value begins like a list of messages.
func beginsMessages(value []byte) bool {
	for _, want := range "[{" {
		value = bytes.TrimLeft(value, " \t\r\n")
		if len(value) == 0 || value[0] != byte(want) {
			return false
		}
		value = value[1:]
	}
	message := value[:min(len(value), 4<<10)]
	return bytes.Contains(message, []byte(`"role"`)) || bytes.Contains(message, []byte(`"from"`))
}

// triedLines is how many lines are searched for a JSON object if the first line begins like one but
// is not: one bad record must not turn the whole input into text.
const triedLines = 20
