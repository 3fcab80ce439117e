//go:build !amd64 || purego

package frame

func endsWide(ends []int32, text []byte) ([]int32, int) { return ends, 0 }
