// Package pebbletest is the disk of tests that cut the power under a store.
package pebbletest
