//go:build !purego

package cpu

// The features that both the processor and the operating system support.
var (
	AVX2   bool // with BMI1, BMI2, LZCNT and POPCNT
	AVX512 bool // F, DQ, BW and VL, with AVX2
	VBMI   bool // with AVX512
	VBMI2  bool // with AVX512
)

func init() {
	highest, _, _, _ := cpuid(0, 0)
	_, _, c1, _ := cpuid(1, 0)
	const osxsave, avx = 1 << 27, 1 << 28
	if highest < 7 || c1&osxsave == 0 || c1&avx == 0 {
		return
	}
	state := xgetbv()
	_, b7, c7, _ := cpuid(7, 0)
	const bmi1, avx2, bmi2 = 1 << 3, 1 << 5, 1 << 8
	const f, dq, bw, vl = 1 << 16, 1 << 17, 1 << 30, 1 << 31
	_, _, c81, _ := cpuid(0x80000001, 0)
	const lzcnt, popcnt = 1 << 5, 1 << 23
	AVX2 = state&6 == 6 && c81&lzcnt != 0 && c1&popcnt != 0 && b7&(bmi1|avx2|bmi2) == bmi1|avx2|bmi2
	AVX512 = AVX2 && state&0xe6 == 0xe6 && b7&(f|dq|bw|vl) == f|dq|bw|vl
	const vbmi, vbmi2 = 1 << 1, 1 << 6
	VBMI = AVX512 && c7&vbmi != 0
	VBMI2 = AVX512 && c7&vbmi2 != 0
}

//go:noescape
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

//go:noescape
func xgetbv() uint32
