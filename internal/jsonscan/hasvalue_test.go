package jsonscan

import "testing"

// TestHasValue: the answer is the same for a text that is whole and for one that comes byte by byte.
func TestHasValue(t *testing.T) {
	for value, want := range map[string]bool{`""`: false, ` "" `: false, `"a"`: true, `[]`: false, `[1]`: true, `{}`: false,
		`{"a":1}`: true, `null`: false, `NaN`: true, `0`: true, `false`: true, `"`: true, ``: false} {
		var s Scanner
		s.Reset([]byte(value))
		if s.HasValue() != want {
			t.Errorf("%s: %v", value, !want)
		}
		pos, end := 0, min(1, len(value))
		s.Slide([]byte(value[:end]), func(used int) ([]byte, bool) {
			pos += used
			more := end < len(value)
			end = min(end+1, len(value))
			return []byte(value[pos:end]), more
		})
		if s.HasValue() != want {
			t.Errorf("%s, byte by byte: %v", value, !want)
		}
	}
}
