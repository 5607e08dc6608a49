//go:build !wasm

package partition

// Work of one Step, which runs beside calls: as much as makes what a step costs besides it small, also where a
// thousand other applications are asked in between.
const (
	tidyKeys   = 1024
	indexSteps = 64 // inputs that enter or leave the graph
)
