package partition

// Work of one Step. It is small because a guest has one thread, so that a call waits until a running step ends. In a guest it
// takes one to two milliseconds to add an input to the graph.
const (
	tidyKeys   = 256
	indexSteps = 5
)
