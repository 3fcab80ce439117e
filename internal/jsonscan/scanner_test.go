package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// whole reads a text as one object.
func whole(s *Scanner) error {
	err := s.Members(func([]byte) error { return s.Skip() })
	if err == nil {
		err = s.End()
	}
	return err
}

// slid reads a text that comes in n bytes at a time, and is forgotten once it is used.
func slid(data []byte, n int) (keys []string, end int, err error) {
	var s Scanner
	from, to := 0, min(n, len(data))
	s.Slide(bytes.Clone(data[:to]), func(used int) ([]byte, bool) {
		from += used
		more := to < len(data)
		to = min(to+n, len(data))
		return bytes.Clone(data[from:to]), more
	})
	err = s.Members(func(key []byte) error {
		keys = append(keys, string(key))
		return s.Skip()
	})
	if err == nil {
		err = s.End()
	}
	end = from + s.Offset()
	if e := (*Error)(nil); errors.As(err, &e) {
		end = from + e.Offset
		e.Offset = end
	}
	return keys, end, err
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("[", 1001)
	for text, want := range map[string]string{
		`[]`:                              "malformed JSON at byte 0: no object",
		`{"a":1`:                          "malformed JSON at byte 6: no comma after a value",
		`{1:2}`:                           "malformed JSON at byte 1: no key",
		`{"a" 1}`:                         "malformed JSON at byte 5: no colon after a key",
		`{"a":}`:                          "malformed JSON at byte 5: no value",
		`{"a":[1 2]}`:                     "malformed JSON at byte 8: no comma in a nested value",
		`{"a":"b`:                         "malformed JSON at byte 7: a string is not closed",
		"{\"a\":\"\n\"}":                  "malformed JSON at byte 6: a control character in a string",
		`{"a":"\x"}`:                      "malformed JSON at byte 6: a bad escape",
		`{"a":"\ud8zz"}`:                  "malformed JSON at byte 6: a bad escape",
		`{} {}`:                           "malformed JSON at byte 3: something after the object",
		`{"a":` + deep:                    "malformed JSON at byte 1006: nested deeper than 1000",
		`{"a":[NaN,-1e+5]}`:               "",
		`{"\ud83d":"\ude00\ud83d\ude00"}`: "",
	} {
		var s Scanner
		s.Reset([]byte(text))
		got := ""
		if err := whole(&s); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40s: %q, want %q", text, got, want)
		}
	}
}

// A Scanner accepts what encoding/json accepts, and I3.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e-3,{"b":null}],"c":"\u00e9\ud83d\ude00","":true}`, ` { } `, `{"a":NaN}`,
		`{"` + strings.Repeat("k", 9000) + `":` + strings.Repeat("1", 99) + `}`, `{"a":"\ud83d`, `{"a":1,}`} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		var s Scanner
		s.Reset(data)
		err := whole(&s)
		e, known := err.(*Error)
		object := bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
		python := bytes.Contains(data, []byte("NaN")) || bytes.Contains(data, []byte("Infinity"))
		if valid := object && json.Valid(data); valid != (err == nil) && !python && (!known || e.Cause != TooDeep) {
			t.Fatalf("%q: %v, and valid is %v", data, err, valid)
		}
		keys, end, slideErr := slid(data, 1+int(n))
		again, other, otherErr := slid(data, max(1, len(data)))
		if strings.Join(keys, "\xff") != strings.Join(again, "\xff") || end != other ||
			(slideErr == nil) != (otherErr == nil) || slideErr != nil && slideErr.Error() != otherErr.Error() {
			t.Fatalf("%q: %q, %d, %v by %d bytes; %q, %d, %v at once", data, keys, end, slideErr, 1+int(n), again,
				other, otherErr)
		}
	})
}

// Decode and Unescape give the same text.
func FuzzStrings(f *testing.F) {
	f.Add([]byte(`a\n\u00e9\ud83d\ude00\ud83dx\udc00`), 3)
	f.Fuzz(func(t *testing.T, data []byte, maxText int) {
		var s Scanner
		s.Reset([]byte(`"` + string(data) + `"`))
		in, err := s.String()
		if err != nil || in.End-in.Start != len(data) {
			return
		}
		want, _ := Unescape(nil, data)
		var got []byte
		rest := append(bytes.Clone(data), '"')
		for {
			text, raw, end := Decode(got, rest, 1+maxText&15)
			got, rest = text, rest[raw:]
			if end == Closed {
				break
			}
			if end == Bad || raw == 0 {
				t.Fatalf("%q: stopped at %q", data, rest)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%q: %q in pieces, %q at once", data, got, want)
		}
		var v string
		if json.Unmarshal([]byte(`"`+string(data)+`"`), &v) == nil && !bytes.Contains(data, []byte{0xff}) &&
			strings.ToValidUTF8(string(want), "") == string(want) && v != string(want) {
			t.Fatalf("%q: %q, encoding/json has %q", data, want, v)
		}
	})
}

func TestValid(t *testing.T) {
	for text, want := range map[string]bool{`{"a": [1, "b"]}`: true, ` null `: true, `"x"`: true, ``: false, `{"a": 1`: false,
		`{} {}`: false, `text`: false} {
		if got := Valid([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
