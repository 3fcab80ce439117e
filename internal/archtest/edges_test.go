package archtest

import "testing"

func TestMayImport(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/dsload", "bench/feed", false},
		{"cmd/dsload", "loader/build/source", true},
		{"export", "shard", true},
		{"export", "loader", false},
		{"loader/build", "loader", true},
		{"loader/build", "loader/build/source", true},
		{"loader/build", "loader/serve", false},
		{"loader/serve", "loader/build", false},
		{"loader/serve", "tokenize", false},
		{"loader/build/source", "loader/build/source/synth", true},
		{"loader/build/source", "loader/build/example", false},
		{"loader/build/source", "loader/internal/budget", false},
		{"loader/build/example", "tokenize", true},
		{"loader/build/example", "loader/build/source", false},
		{"loader/serve/feed", "loader/serve/collate", true},
		{"loader/serve/feed", "loader/serve/sampler", true},
		{"loader/serve/feed", "shard", false},
		{"loader/serve/sampler", "loader/serve/collate", false},
		{"loader", "loader/build", false},
		{"shard", "loader", false},
		{"tokenize", "shard", false},
	} {
		if got := mayImport(place(c.from), c.to); got != c.want {
			t.Errorf("%s may import %s: %v", c.from, c.to, got)
		}
	}
}
