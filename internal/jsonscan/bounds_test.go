package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/cputime"
)

// A value ends at the same byte however it is cut into pieces.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	values := []string{`{}`, `[]`, `""`, `"a\\"`, `"a\"b"`, `{"a":[1,{"b":"]}"}],"c":"\\\""}`, `[[[]],[]]`}
	for range 200 {
		v, err := json.Marshal(randomValue(r, 3))
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(v))
	}
	for _, v := range values {
		scalar := !strings.ContainsAny(v[:1], `{["`)
		for _, after := range []string{"", " ", ",", "]", "}", "\n{}"} {
			var s Bounds
			data, length := []byte(v+after), 0
			for !s.Ended && !s.Bad && length < len(data) {
				piece := data[length : length+1+r.IntN(len(data)-length)]
				n := s.Skip(piece)
				length += n
				if n < len(piece) && !s.Ended {
					break
				}
			}
			if !s.Finish() || s.Bad || length != len(v) || s.Ended != (!scalar || after != "") {
				t.Errorf("%s before %q: %d bytes, %+v", v, after, length, s)
			}
		}
	}
	for _, none := range []string{",", " ", "]", "}"} {
		var s Bounds
		if s.Skip([]byte(none)); !s.Bad || s.Finish() {
			t.Errorf("%q: %+v", none, s)
		}
	}
	for _, open := range []string{`{`, `[1`, `"a`, `"a\"`, ``} {
		var s Bounds
		if s.Skip([]byte(open)); s.Finish() {
			t.Errorf("%q ends", open)
		}
	}
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n < 2 && depth > 0:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	case n < 4 && depth > 0:
		object := map[string]any{}
		for range r.IntN(4) {
			object[randomText(r)] = randomValue(r, depth-1)
		}
		return object
	case n == 4:
		return r.IntN(2) == 0
	case n == 5:
		return r.NormFloat64()
	}
	return randomText(r)
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteByte(`a"\\{}[],: `[r.IntN(11)])
	}
	return b.String()
}

// What AppendString and AppendEscaped write, others read.
func TestAppendString(t *testing.T) {
	var all []byte
	for c := range rune(0x300) {
		all = append(all, string(c)...)
	}
	for _, text := range []string{"", "plain", "\"\\\n\t\x00\x1f\x7f", string(all), "\u2028\u2029 中文 👩"} {
		data := AppendString([]byte("["), []byte(text))
		var back []string
		if err := json.Unmarshal(append(data, ']'), &back); err != nil || back[0] != text {
			t.Errorf("%q: %s, %v", text, data, err)
		}
		if inner := AppendEscaped(nil, []byte(text)); !bytes.Equal([]byte(fmt.Sprintf("[\"%s\"", inner)), data) {
			t.Errorf("%q: %s inside, %s whole", text, inner, data)
		}
	}
}

// TestBoundsOfEscapes: four times as many escapes take four times the CPU time, not sixteen.
func TestBoundsOfEscapes(t *testing.T) {
	measure := func(n int) time.Duration {
		text := []byte(`"` + strings.Repeat(`\n`, n/2) + `"`)
		began := cputime.Process()
		if got := new(Bounds).Skip(text); got != len(text) {
			t.Fatalf("the string ends at %d of %d", got, len(text))
		}
		return cputime.Process() - began
	}
	const size = 256 << 10
	quarter, whole := measure(size/4), measure(size)
	if whole > max(8*quarter, 20*time.Millisecond) {
		t.Errorf("%v for %d bytes, %v for %d", quarter, size/4, whole, size)
	}
}
