//go:build !race

package effort

// Raced reports whether the race detector is on.
const Raced = false
