package csvscan

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestNear: a quote among the first eight bytes is found, beside bytes that differ from it in a bit.
func TestNear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alike := []byte{'"', '#', '!', 0xa2, 0, 0xff, 'a', ' ', ','}
	for range 20_000 {
		data := make([]byte, r.IntN(40))
		for i := range data {
			data[i] = alike[1+r.IntN(len(alike)-1)]
			if r.IntN(12) == 0 {
				data[i] = '"'
			}
		}
		want := bytes.IndexByte(data, '"')
		if want >= 8 || len(data) < 8 {
			want = -1
		}
		if got := near(data); got != want {
			t.Fatalf("%q: %d, want %d", data, got, want)
		}
	}
}

// plainField is AppendField, byte by byte.
func plainField(dst, record []byte, comma byte) (text, rest []byte, ok bool) {
	if len(record) == 0 || record[0] != '"' {
		for len(record) > 0 && record[0] != comma {
			dst, record = append(dst, record[0]), record[1:]
		}
		return dst, record, true
	}
	for record = record[1:]; len(record) > 0; record = record[1:] {
		if record[0] == '"' {
			if len(record) == 1 || record[1] != '"' {
				return dst, record[1:], true
			}
			record = record[1:]
		}
		dst = append(dst, record[0])
	}
	return dst, record, false
}

// TestFieldsByteByByte: fields with many quotes and few, short and long, are decoded and delimited as byte by byte, into a
// buffer without room too.
func TestFieldsByteByByte(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		record := make([]byte, r.IntN(60))
		rarely := 2 + r.IntN(20)
		for i := range record {
			if record[i] = "abcdefgh, \n"[r.IntN(11)]; r.IntN(rarely) == 0 {
				record[i] = '"'
			}
		}
		want, wantRest, wantOK := plainField([]byte("before"), record, ',')
		dst := append(make([]byte, 0, len("before")+r.IntN(2)*r.IntN(80)), "before"...)
		got, rest, ok := AppendField(dst, record, ',')
		if ok != wantOK || ok && (!bytes.Equal(got, want) || !bytes.Equal(rest, wantRest)) {
			t.Fatalf("%q: %q, %q, %v; want %q, %q, %v", record, got, rest, ok, want, wantRest, wantOK)
		}
		if ok && len(record) > 0 && record[0] == '"' {
			s := Bounds{Comma: ',', state: quoted}
			if n := s.Skip(record[1 : len(record)-len(rest)]); n != len(record)-len(rest)-1 || s.state != afterQuote {
				t.Fatalf("%q: %d bytes, state %d", record, n, s.state)
			}
		}
	}
}
