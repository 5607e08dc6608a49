//go:build race

package httpd

// raced says that the race detector keeps its own books in memory.
const raced = true
