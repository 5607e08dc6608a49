// Package logtest tests implementations of [log.Log], including crashes, and makes random operations for the tests of packages that read
// a log.
package logtest
