// Package logtest makes operations and bodies for tests: random ones, and ones with all fields set.
package logtest
