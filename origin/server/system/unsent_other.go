//go:build !linux

package system

// LimitUnsent does nothing: the option is Linux's.
func LimitUnsent(any, int) {}
