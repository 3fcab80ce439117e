package jinja_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// TestDict: keys keep the order in which they were first set, be they few or many, and a copy is one.
func TestDict(t *testing.T) {
	for _, n := range []int{0, 1, 5, 100} {
		d := &jinja.Dict{}
		var keys []string
		for i := range n {
			keys = append(keys, "key "+strconv.Itoa(i*7%n))
			d.Set(keys[i], -1)
		}
		for i, key := range keys {
			d.Set(key, i)
		}
		clone := d.Clone()
		even := d.Without(func(_ string, value any) bool { return value.(int)%2 == 1 })
		for i, key := range keys {
			clone.Set(key, "changed")
			if v, ok := d.Get(key); !ok || v != i {
				t.Errorf("%d keys: %s is %v, want %d", n, key, v, i)
			}
			if _, ok := even.Get(key); ok != (i%2 == 0) {
				t.Errorf("%d keys: those of even values hold %s: %v", n, key, ok)
			}
		}
		clone.Set("new", 1)
		if _, ok := d.Get("new"); ok || !slices.Equal(d.Keys(), keys) || clone.Len() != n+1 || d.Len() != n {
			t.Errorf("%d keys: %q, want %q", n, d.Keys(), keys)
		}
	}
}
