package collate

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// filled returns what the functions with kernels write for n elements, with or without the kernels. What lies
// after the elements must stay.
func filled(t *testing.T, kernels bool, raw []byte, n int, v uint32) (out [][]byte) {
	t.Helper()
	saved := hasKernels
	hasKernels = kernels
	defer func() { hasKernels = saved }()
	const guard = 64
	add := func(width int, write func(dst []byte)) {
		dst := bytes.Repeat([]byte{0xee}, n*width+guard)
		write(dst[: n*width : n*width])
		if !bytes.Equal(dst[n*width:], bytes.Repeat([]byte{0xee}, guard)) {
			t.Errorf("%d elements of %d bytes: wrote past them", n, width)
		}
		out = append(out, dst)
	}
	for _, tokenBytes := range []int{2, 4} {
		b := New(Options{TokenBytes: tokenBytes})
		for _, width := range []int{tokenBytes, 4, 8} {
			add(width, func(dst []byte) { b.widen(dst, width, raw[:min(len(raw), n*tokenBytes)]) })
		}
	}
	for _, width := range []int{4, 8} {
		add(width, func(dst []byte) { count(dst, width, int(v>>2)) })
		add(width, func(dst []byte) { fill(dst, width, int64(int32(v))) })
	}
	add(2, func(dst []byte) { fill(dst, 2, int64(v)) })
	return out
}

func checkKernels(t *testing.T, raw []byte, n int, v uint32) {
	t.Helper()
	want, have := filled(t, false, raw, n, v), filled(t, true, raw, n, v)
	for i := range want {
		if !bytes.Equal(want[i], have[i]) {
			t.Errorf("%d elements, case %d: % x, want % x", n, i, have[i], want[i])
		}
	}
}

// TestKernels compares each kernel with its twin in plain Go, for every length around those of the vectors. Ids of
// four bytes may have their highest bit set.
func TestKernels(t *testing.T) {
	if !hasKernels {
		t.Skip("no kernels here")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		raw := make([]byte, 4*n)
		for i := range raw {
			raw[i] = byte(rng.Uint32())
		}
		checkKernels(t, raw, n, rng.Uint32())
	}
	// The twin itself, in a few elements.
	b := New(Options{TokenBytes: 4})
	dst := make([]byte, 16)
	b.widen(dst, 8, []byte{0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0})
	if have := int64(binary.LittleEndian.Uint64(dst)); have != -2 || dst[8] != 7 {
		t.Errorf("-2 and 7 widened are % x", dst)
	}
}

func FuzzKernels(f *testing.F) {
	f.Add([]byte("some ids, as many as one likes: these are about forty-eight"), uint32(7))
	f.Add([]byte{}, uint32(1<<31))
	f.Fuzz(func(t *testing.T, raw []byte, v uint32) {
		if !hasKernels {
			t.Skip("no kernels here")
		}
		checkKernels(t, raw, len(raw)/4, v)
	})
}
