package export

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestQuoted compares strings with those of encoding/json: every character below U+3000, and each after
// and before others.
func TestQuoted(t *testing.T) {
	text := "begin\u2028\u2029\u202a"
	for r := range rune(0x3000) {
		if r < 0xd800 || r > 0xdfff {
			text += string(r) + "x"
		}
	}
	texts := []string{"", text, "\u2029", "<a & b>", "\U0001f600\x7f"}
	for c := range rune(0x100) { // each at each place of eight, and twice
		for i := range 8 {
			texts = append(texts, strings.Repeat("x", i)+string(c)+strings.Repeat("y", 9-i)+string(c))
		}
	}
	for _, text := range texts {
		var whole strings.Builder
		e := json.NewEncoder(&whole)
		e.SetEscapeHTML(false)
		if err := e.Encode(text); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSuffix(whole.String(), "\n")
		if got := appendQuoted([]byte("before"), []byte(text)); string(got) != "before"+want {
			t.Errorf("%.40q: got %.80s, want %.80s", text, got[6:], want)
		}
	}
}

// TestNumbers compares numbers with strconv's: all of few digits, and those next to powers of ten.
func TestNumbers(t *testing.T) {
	list := []uint32{0, math.MaxUint32}
	for n := range uint32(120_000) {
		list = append(list, n, 7919*n)
	}
	for power := uint32(10); power < 1e9; power *= 10 {
		for n := power - 3; n < power+3; n++ {
			list = append(list, n, 4*n)
		}
	}
	got := string(appendNumbers([]byte("["), list))
	for _, n := range list {
		want := strconv.FormatUint(uint64(n), 10) + ", "
		if got = strings.TrimPrefix(got, "["); !strings.HasPrefix(got, want) {
			t.Fatalf("%.20q, want %q", got, want)
		}
		got = got[len(want):]
	}
	if got != "" {
		t.Errorf("%.20q after the last number", got)
	}
}
