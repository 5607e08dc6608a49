package wire_test

import "time"

var begun = time.Now()

// processorTime is what has passed: a guest knows no other clock.
func processorTime() time.Duration { return time.Since(begun) }
