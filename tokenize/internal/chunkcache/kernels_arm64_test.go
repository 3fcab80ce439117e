//go:build !purego

package chunkcache

func kernelLevels() []string { return []string{"neon"} }

// useKernels calls f with the kernels of a level.
func useKernels(_ string, f func()) { f() }
