//go:build !purego

package chunkcache

func kernelLevels() []string {
	var levels []string
	if hasAVX2 {
		levels = append(levels, "avx2")
	}
	if hasVBMI {
		levels = append(levels, "vbmi")
	}
	return levels
}

// useKernels calls f with the kernels of a level.
func useKernels(level string, f func()) {
	a, v := hasAVX2, hasVBMI
	hasVBMI = level == "vbmi"
	f()
	hasAVX2, hasVBMI = a, v
}
