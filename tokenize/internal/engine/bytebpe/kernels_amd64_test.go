//go:build !purego

package bytebpe

func kernelLevels() []string {
	levels := []string{"go"}
	if hasAVX2 {
		levels = append(levels, "avx2")
	}
	if hasAVX512 {
		levels = append(levels, "avx512")
	}
	return levels
}

// useKernels selects a level until the returned function is called.
func useKernels(name string) func() {
	a, b, c := hasAVX2, hasAVX512, hasVBMI2
	hasAVX2 = a && name != "go"
	hasAVX512 = b && name == "avx512"
	hasVBMI2 = c && name == "avx512"
	return func() { hasAVX2, hasAVX512, hasVBMI2 = a, b, c }
}
