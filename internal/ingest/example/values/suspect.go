package values

import (
	"bytes"
)

// IsMissing reports whether a text is nothing but a word that stands for a missing value where pandas and datasets read
// CSV.
func IsMissing[T string | []byte](text T) bool {
	if len(text) > len("None") {
		return false
	}
	switch string(text) {
	case "nan", "NaN", "-nan", "-NaN", "None", "null", "NULL", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>":
		return true
	}
	return false
}

// IsObject reports whether a text looks like an object of JSON, or a dict or a list of texts as Python prints them, and
// nothing else.
func IsObject(text []byte) bool {
	if len(text) < 2 || text[0] != '{' && text[0] != '[' || text[1] != '"' && text[1] != '\'' {
		return false
	}
	text = bytes.TrimRight(text, " \t\r\n")
	if text[0] == '[' {
		return bytes.HasPrefix(text, []byte("['")) && bytes.HasSuffix(text, []byte("']"))
	}
	return text[len(text)-1] == '}' && bytes.Contains(text[:min(len(text), 512)], []byte{text[1], ':'})
}
