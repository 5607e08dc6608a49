//go:build purego || !(amd64 || arm64)

package cpu

// This build has Generic only.
var lowest = AVX2

var best = Generic
