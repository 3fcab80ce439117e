//go:build (amd64 || arm64) && !purego

package shard

// prefetchLines asks for the cache lines of n bytes from p, at least one. It loads nothing and cannot fault.
//
//go:noescape
func prefetchLines(p *byte, n int)
