//go:build !linux

package main

// addressLimit returns 0: other systems have no limit on address space, or count it differently.
func addressLimit() int64 { return 0 }
