//go:build !purego

package bytebpe

func kernelLevels() []string { return []string{"go", "neon"} }

// useKernels selects a level until the returned function is called.
func useKernels(name string) func() {
	hasNEON = name == "neon"
	return func() { hasNEON = true }
}
