//go:build race

package testkit

// raceDetector reports whether the tests run with the race detector.
const raceDetector = true
