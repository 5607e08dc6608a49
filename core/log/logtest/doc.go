// Package logtest holds every [log.Log] to its contract, crashes included, and makes random
// operations for the tests of what reads logs.
package logtest
