//go:build !linux

package bytebpe

// populate does nothing: pages are mapped when they are first used.
func populate[T any]([]T) {}
