//go:build race

package effort

// Raced reports whether the race detector is on. Tests then take five to ten times as long and far
// more memory, and sync.Pool drops items at random, so that allocations cannot be counted.
const Raced = true
