//go:build purego || (!amd64 && !arm64)

package bytebpe

func kernelLevels() []string { return []string{"go"} }

func useKernels(string) func() { return func() {} }
