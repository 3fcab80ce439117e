package values

import "testing"

// TestObjects: a text that is a record as a whole is told from one that begins like one.
func TestObjects(t *testing.T) {
	for text, want := range map[string]bool{`{"a": 1}`: true, "{'a': None}\n": true, `{"a" : 1} b`: false, `{"a"}`: false,
		`{a: 1}`: false, `{"`: false, "": false, `{"a": {"b": 1}}`: true, `["a"]`: false,
		"['a', 'b']\n": true, "['a'] b": false, "['": false} {
		if got := IsObject([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
