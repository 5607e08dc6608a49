//go:build purego || !amd64

package cpu

var best = highest()
