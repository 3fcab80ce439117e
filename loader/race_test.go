//go:build race

package loader

const raceEnabled = true
