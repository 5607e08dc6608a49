package partition

// Work of one Step. A guest has one thread, and a call that comes meanwhile waits for the step's end: an input that
// enters the graph takes one to two milliseconds there.
const (
	tidyKeys   = 256
	indexSteps = 5
)
