//go:build !wasm

package partition

// Work of one Step, which runs at the same time as calls. It is large enough that the cost of beginning a step is small,
// also if a thousand other applications are asked in between.
const (
	tidyKeys   = 1024
	indexSteps = 64 // inputs that enter or leave the graph
)
