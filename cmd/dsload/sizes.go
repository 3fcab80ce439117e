package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/units"
)

// sizeValue is a flag that takes a number of bytes (64MiB, 2GB, 1e6) or, with count set, a plain
// number (30000, 1e9).
type sizeValue struct {
	n     *int64
	count bool
}

func (v sizeValue) String() string {
	switch {
	case v.n == nil:
		return "0"
	case v.count:
		return strconv.FormatInt(*v.n, 10)
	}
	return formatSize(*v.n)
}

func (v sizeValue) Type() string {
	if v.count {
		return "N"
	}
	return "SIZE"
}

func (v sizeValue) Set(s string) error {
	n, err := parseSize(s, !v.count)
	if err != nil {
		return err
	}
	*v.n = n
	return nil
}

// sizeUnits are the units of sizes: SI powers of 1000, IEC powers of 1024. A single letter is IEC, as in dd and GNU
// tools.
var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// parseSize parses a size. withUnits allows the units of bytes.
func parseSize(s string, withUnits bool) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	end := len(text)
	if withUnits {
		end = len(strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz "))
	}
	unit, known := sizeUnits[strings.TrimSpace(text[end:])]
	x, err := strconv.ParseFloat(strings.ReplaceAll(text[:end], "_", ""), 64)
	if err != nil || !known || math.IsNaN(x) {
		if withUnits {
			return 0, fmt.Errorf("invalid size %q: want a number with an optional unit, as in 64MiB, 2GB or 1e6", s)
		}
		return 0, fmt.Errorf("invalid number %q: want a whole number without a unit, as in 30000 or 1e6", s)
	}
	x *= unit
	if x < 0 || x > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is out of range", s)
	}
	if x != math.Trunc(x) && !withUnits {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return int64(x), nil
}

// formatSize formats a number of bytes: exactly if a unit divides it, else with one decimal.
func formatSize(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			if n%u.bytes == 0 {
				return fmt.Sprintf("%d%s", n/u.bytes, u.name)
			}
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// formatCount formats a whole number with thousands separators.
func formatCount(n int64) string { return units.Count(n) }
