//go:build race

package shard_test

// raceEnabled is for tests that the race detector would disturb or make too slow.
const raceEnabled = true
