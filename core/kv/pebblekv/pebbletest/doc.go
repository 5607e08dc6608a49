// Package pebbletest provides a disk in memory for tests that cut the power of a store.
package pebbletest
