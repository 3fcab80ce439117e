package chat

import "slices"

// PairOf returns the fields of a prompt and its answer among the names of a record's fields, as they are
// read where the record has no list of messages, and the shape that they make: "" if it has none.
func PairOf(names []string) (prompt, answer string, shape Shape) {
	for _, p := range pairFields {
		if slices.Contains(names, p.question) && slices.Contains(names, p.answer) {
			return p.question, p.answer, p.shape
		}
	}
	for _, answer := range []string{"chosen", preferredField} {
		if slices.Contains(names, answer) {
			return "", answer, Preference
		}
	}
	return "", "", ""
}
