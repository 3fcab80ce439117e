package filter

import "strings"

// wanted is a VALUE with its meanings besides its text.
type wanted struct {
	text     string
	number   number
	isNumber bool
	word     string // "true", "false" or "null", "" for none
}

func parseWanted(text string) wanted {
	w := wanted{text: text}
	w.number, w.isNumber = jsonNumber([]byte(text))
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
	switch value[0] {
	case '"':
		return string(stringText(value)) == w.text
	case '[':
		return anyElement(value, w.equalsJSON)
	case '{':
		return false
	case 't', 'f', 'n':
		return string(value) == w.word
	}
	if !w.isNumber {
		return string(value) == w.text // Python's NaN and infinities
	}
	n, ok := jsonNumber(value)
	return ok && n.compare(&w.number) == 0
}

// equalsText compares with a text that may stand for a number or a boolean.
func (w wanted) equalsText(text []byte) bool {
	if string(text) == w.text {
		return true
	}
	if w.isNumber {
		n, ok := jsonNumber(text)
		return ok && n.compare(&w.number) == 0
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
