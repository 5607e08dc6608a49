//go:build race

package command

// raced says that the race detector keeps its own books in memory.
const raced = true
