package log_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
)

// Rows have each operation as in the log, after its length.
func ExampleEncodeRows() {
	op := log.Op{Dot: log.Dot{Writer: 2, Seq: 41}, At: 1_790_000_000_000 << 16, By: "k", Body: &log.InputDelete{Input: log.Dot{Writer: 1, Seq: 300}}}
	fmt.Printf("% x\n", log.EncodeRows([]log.Op{op}))
	// Output: 1b 01 08 02 10 29 19 00 00 00 6c 50 c4 a0 01 22 01 6b aa 01 07 0a 05 08 01 10 ac 02
}
