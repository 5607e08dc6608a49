//go:build !linux

package host

func hugeMemory([]byte) {}

func hugeCode() {}
