package main

import "testing"

func TestProcsWithin(t *testing.T) {
	for _, c := range []struct {
		limit, capBytes int64
		want            int
	}{
		{1 << 30, 256 << 20, 1},
		{3_000_000 << 10, 256 << 20, 14},
		{3_000_000 << 10, 1 << 30, 4},
		{16 << 30, 256 << 20, 201},
	} {
		if got := procsWithin(c.limit, c.capBytes); got != c.want {
			t.Errorf("%d threads within %s and a cap of %s, want %d", got, formatSize(c.limit), formatSize(c.capBytes),
				c.want)
		}
		if err := checkAddresses(c.limit, c.capBytes); (err != nil) != (c.limit < 2<<30) {
			t.Errorf("%s with a cap of %s: %v", formatSize(c.limit), formatSize(c.capBytes), err)
		}
	}
	if err := checkAddresses(0, 1<<40); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
