//go:build !wasm

package partition

// Work of one Step, which runs concurrently with calls. It is large enough that the overhead of a step is small, even if steps of a
// thousand other applications come between.
const (
	tidyKeys   = 1024
	indexSteps = 64 // inputs added to or deleted from the graph
)
