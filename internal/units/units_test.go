package units

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -1234567: "-1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int64]string{0: "0 rows", 1: "1 row", 2: "2 rows", 1234: "1,234 rows"} {
		if got := Plural(n, "row"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestExact(t *testing.T) {
	for n, want := range map[Size]string{0: "0", 399: "399", 1 << 10: "1KiB", 1536: "1.5KiB", 50_000: "50000",
		64 << 20: "64MiB"} {
		if got := n.Exact(); got != want {
			t.Errorf("%d: %s, want %s", int64(n), got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"64MiB", 64 << 20, true}, {"2GB", 2e9, true}, {"1e6", 1e6, true}, {"1.5k", 1536, true},
		{"1_000", 1000, true},
		{"512 KiB", 512 << 10, true}, {"", 0, false}, {"-1", 0, false}, {"12parsecs", 0, false}, {"1e99", 0, false},
		{"nan", 0, false}, {"inf", 0, false},
	} {
		got, err := ParseSize(c.in)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("ParseSize(%q) = %d, %v", c.in, got, err)
		}
	}
	for _, s := range []string{"64MiB", "1.5", "1e-3"} {
		if n, err := ParseCount(s); err == nil {
			t.Errorf("ParseCount(%q) = %d, want an error", s, n)
		}
	}
	if n, err := ParseCount("1e12"); err != nil || n != 1e12 {
		t.Errorf("1e12 as a count = %d, %v", n, err)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 64 << 20: "64MiB", 1536: "1.5KiB", 999: "999B"} {
		if got := Size(n).String(); got != want {
			t.Errorf("Size(%d) = %s, want %s", n, got, want)
		}
	}
}
