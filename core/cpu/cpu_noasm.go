//go:build purego || !(amd64 || arm64)

package cpu

// This build has only Generic, because lowest is above best.
var lowest = AVX2

var best = Generic
