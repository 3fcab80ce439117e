package filter

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// wanted is a VALUE with its meanings besides its text.
type wanted struct {
	text   string
	number string // canonical, "" for none
	word   string // "true", "false" or "null", "" for none
}

func parseWanted(text string) wanted {
	w := wanted{text: text}
	if n, ok := canonicalNumber([]byte(text)); ok {
		w.number = n
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.EqualFold(text, word) {
			w.word = word
		}
	}
	return w
}

// equalsJSON compares with a JSON value: strings by text, numbers by value, true, false and null by
// name. A list is equal if one of its elements is. An object is never equal.
func (w wanted) equalsJSON(value []byte) bool {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return false
	}
	switch value[0] {
	case '"':
		if !bytes.ContainsRune(value, '\\') {
			return string(value[1:len(value)-1]) == w.text
		}
		var text string
		return json.Unmarshal(value, &text) == nil && text == w.text
	case '[':
		var list []json.RawMessage
		return json.Unmarshal(value, &list) == nil && slices.ContainsFunc(list, func(v json.RawMessage) bool {
			return len(v) > 0 && v[0] != '[' && w.equalsJSON(v)
		})
	case '{':
		return false
	case 't', 'f', 'n':
		return string(value) == w.word
	}
	if w.number == "" {
		return string(value) == w.text // Python's NaN and infinities
	}
	n, ok := canonicalNumber(value)
	return ok && n == w.number
}

// equalsText compares with a text that may stand for a number or a boolean.
func (w wanted) equalsText(text []byte) bool {
	if string(text) == w.text {
		return true
	}
	if w.number != "" {
		n, ok := canonicalNumber(text)
		return ok && n == w.number
	}
	return (w.word == "true" || w.word == "false") && strings.EqualFold(string(text), w.word)
}

// equalsFolder compares with the value that a folder's name gives. A number there may begin with zeros, as
// in month=07.
func (w wanted) equalsFolder(text []byte) bool {
	if w.equalsText(text) {
		return true
	}
	value, isNumber := parseNumber([]byte(w.text))
	n, ok := parseNumber(text)
	return isNumber && ok && n.compare(&value) == 0
}
