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
