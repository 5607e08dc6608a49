// Package logtest checks the contract of a [log.Log], including crashes, and makes random operations for the tests of its readers.
package logtest
