package wire_test

import "time"

var begun = time.Now()

// processorTime returns the elapsed time, since a guest has no other clock.
func processorTime() time.Duration { return time.Since(begun) }
