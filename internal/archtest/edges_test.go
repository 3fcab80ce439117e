package archtest

import "testing"

func TestMayImport(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/dsload", "bench/feed", false},
		{"cmd/dsload", "internal/ingest/source", true},
		{"export", "shard", true},
		{"export", "internal/ingest", false},
		{"internal/ingest", "loader", false},
		{"internal/ingest", "internal/ingest/source", true},
		{"internal/ingest", "internal/serve", false},
		{"internal/serve", "internal/ingest", false},
		{"internal/serve", "tokenize", false},
		{"internal/ingest/source", "internal/ingest/source/synth", true},
		{"internal/ingest/source", "internal/ingest/example", false},
		{"internal/ingest/source", "internal/budget", false},
		{"internal/ingest/example", "tokenize", true},
		{"internal/ingest/example", "internal/ingest/source", false},
		{"internal/serve/feed", "internal/serve/collate", true},
		{"internal/serve/feed", "internal/serve/sampler", true},
		{"internal/serve/feed", "shard", false},
		{"internal/serve/sampler", "internal/serve/collate", false},
		{"loader", "internal/ingest", true},
		{"loader", "internal/store", false},
		{"shard", "internal/fault", false},
		{"shard", "internal/dataset", false},
		{"shard", "internal/shardfile", true},
		{"internal/shardfile", "shard", false},
		{"tokenize", "shard", false},
	} {
		if got := mayImport(place(c.from), c.to); got != c.want {
			t.Errorf("%s may import %s: %v", c.from, c.to, got)
		}
	}
}
