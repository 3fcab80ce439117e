//go:build !race

package main

// raceDetector reports whether the program has the race detector, which multiplies its memory, so
// that tests cannot check a cap.
const raceDetector = false
