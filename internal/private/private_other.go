//go:build !unix

package private

// Folder returns nil: owners and modes are not known.
func Folder(string) error { return nil }

// Entry returns nil.
func Entry(string) error { return nil }

// Parent returns nil.
func Parent(string) error { return nil }
