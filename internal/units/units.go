// Package units writes numbers as people read them, and reads the sizes that people write.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Count formats an integer with thousands separators.
func Count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural returns a count with its noun, such as "1 shard" or "1,200 shards".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Size is a number of bytes.
type Size int64

// String formats the size: exactly if a unit divides it, else with one decimal.
func (s Size) String() string {
	for _, u := range []struct {
		bytes Size
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if s >= u.bytes {
			if s%u.bytes == 0 {
				return fmt.Sprintf("%d%s", s/u.bytes, u.name)
			}
			return fmt.Sprintf("%.1f%s", float64(s)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}

// Exact formats the size so that ParseSize reads the same: as String does if that loses nothing, else in digits.
func (s Size) Exact() string {
	text := s.String()
	if n, err := ParseSize(text); err == nil && Size(n) == s && s >= 1<<10 {
		return text
	}
	return strconv.FormatInt(int64(s), 10)
}

// Bytes formats an exact number of bytes, such as 1,234 bytes; -1 is unknown.
func Bytes(n int64) string {
	if n < 0 {
		return "unknown"
	}
	return Count(n) + " bytes"
}

// factors are the units of sizes: SI powers of 1000, IEC powers of 1024. A single letter is IEC, as in dd and GNU
// tools.
var factors = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// ParseSize parses a number of bytes with an optional unit, such as 64MiB, 2GB or 1e6.
func ParseSize(s string) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	factor, known := factors[strings.TrimSpace(text[len(number):])]
	x, ok := parse(number)
	if !known || !ok {
		return 0, fmt.Errorf("invalid size %q: want a number with an optional unit, as in 64MiB, 2GB or 1e6", s)
	}
	return inRange(x * factor)
}

// ParseCount parses a whole number without a unit, such as 30000 or 1e9.
func ParseCount(s string) (int64, error) {
	x, ok := parse(strings.ToLower(strings.TrimSpace(s)))
	if !ok {
		return 0, fmt.Errorf("invalid number %q: want a whole number without a unit, as in 30000 or 1e6", s)
	}
	n, err := inRange(x)
	if err == nil && x != math.Trunc(x) {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, err
}

func parse(s string) (float64, bool) {
	x, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return x, err == nil && !math.IsNaN(x)
}

// maxNumber leaves room to add two numbers.
const maxNumber = math.MaxInt64 / 2

func inRange(x float64) (int64, error) {
	switch {
	case x < 0:
		return 0, errors.New("must be at least 0")
	case x > maxNumber:
		return 0, fmt.Errorf("must be at most %d", int64(maxNumber))
	}
	return int64(x), nil
}

// SecondDigit returns the power of ten that the second digit of n stands for, 1 if n has fewer.
func SecondDigit(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return unit
}
