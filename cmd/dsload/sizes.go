package main

import (
	"strconv"

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

func (v sizeValue) Set(s string) (err error) {
	parse := units.ParseSize
	if v.count {
		parse = units.ParseCount
	}
	n, err := parse(s)
	if err == nil {
		*v.n = n
	}
	return err
}

func formatSize(n int64) string { return units.Size(n).String() }

func formatCount(n int64) string { return units.Count(n) }

func plural[N int | int64](n N, noun string) string { return units.Plural(n, noun) }
