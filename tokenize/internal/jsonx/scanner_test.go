package jsonx

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

var documents = []string{
	``, ` `, `null`, `nul`, `true`, `tru`, `false `, `[]`, `{}`, `[1,]`, `{"a":1,}`, `[1 2]`, `{"a" 1}`, `{1:2}`, `[`,
	`{"a":`, `"`, `"abc`, `"abc\`, "\"a\nb\"",
	`0`, `-0`, `00`, `01`, `-`, `-a`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1E-7`, `1e5x`, `123456789012345678`,
	`1234567890123456789`, `18446744073709551615`,
	`18446744073709551616`, `99999999999999999999999`, `1.0`, `1e3`, `-5`, `007`,
	`"\u0041\u00e9\u6f22\ud83d\udc4d"`, `"\ud800"`, `"\udc00\ud800"`, `"\u12"`, `"\u12g4"`, `"\x"`,
	`"\"\\\/\b\f\n\r\t"`, `"abcdefgh\"ijklmnopqr\\"`,
	"{\n        \"a\": [\n                1,\n                \"b c\"\n        ],\t\"b\" :{\"c\":null}\r\n}\n", `"` +
		strings.Repeat("x", 40) + `é"`, "\xff", "\"\xff\"",
	`{"a":{"b":[1,[2,[3,{"c":"d"}]]]},"e":-1.25e2}` + "         \n         ", `[] []`, `{"a":1,"a":2}`,
}

func FuzzScanner(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, data) })
}

// compare holds a Scanner against encoding/json, which takes lone surrogates, bytes that are not
// UTF-8 and deeper nesting as well.
func compare(t *testing.T, data []byte) {
	var want any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	valid := json.Valid(data) && d.Decode(&want) == nil
	s, err := NewScanner(data)
	if (err == nil) != utf8.Valid(data) {
		t.Fatalf("UTF-8: %v", err)
	}
	if err != nil {
		return
	}
	skipped := s.Skip()
	if skipped == nil {
		skipped = s.End()
	}
	strict := !bytes.Contains(data, []byte(`\u`)) && bytes.Count(data, []byte("["))+bytes.Count(data,
		[]byte("{")) < maxDepth
	if skipped == nil && !valid || skipped != nil && valid && strict {
		t.Fatalf("%q: Skip says %v, valid is %v", data, skipped, valid)
	}
	if skipped != nil {
		return
	}
	v, err := s.At(0).Value(1 << 20)
	if err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	same(t, data, v, want)
	compareUint(t, s, data, want)
}

// same compares a tree.
func same(t *testing.T, data []byte, v Value, want any) {
	ok := false
	switch w := want.(type) {
	case nil:
		ok = v.Kind == 'n'
	case bool:
		ok = v.Kind == 't' && w || v.Kind == 'f' && !w
	case json.Number:
		ok = v.Kind == '0' && v.Text == string(w)
	case string:
		ok = v.Kind == '"' && v.Text == w
	case []any:
		if ok = v.Kind == '[' && len(v.Elems) == len(w); ok {
			for i, e := range w {
				same(t, data, v.Elems[i], e)
			}
		}
	case map[string]any:
		if ok = v.Kind == '{' && len(v.Members) == len(w); ok {
			for _, m := range v.Members {
				same(t, data, m.Value, w[m.Key])
			}
		}
	}
	if !ok {
		t.Fatalf("%q: %+v, want %v", data, v, want)
	}
}

// compareUint reads a document that is one number as an integer: it must be one exactly where it is
// written like one and fits.
func compareUint(t *testing.T, s *Scanner, data []byte, want any) {
	n, ok := want.(json.Number)
	if !ok {
		return
	}
	var exact uint64
	isUint := json.Unmarshal(data, &exact) == nil
	for _, limit := range []uint64{0, 7, 1<<24 - 1, math.MaxUint64} {
		r := s.At(0)
		got, err := r.Uint(limit)
		if fits := isUint && exact <= limit; (err == nil) != fits || fits && (got != exact || r.End() != nil) {
			t.Fatalf("Uint(%d) of %s: %d, %v", limit, n, got, err)
		}
	}
}
