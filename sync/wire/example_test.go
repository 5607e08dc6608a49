package wire_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// A stream arrives in pieces of any size. The reader returns it message by message.
func ExampleReader() {
	ops := []log.Op{
		{Dot: log.Dot{Writer: 2, Seq: 41}, By: "key", Body: &log.InputCreate{ID: "ramen"}},
		{Dot: log.Dot{Writer: 2, Seq: 42}, By: "key", Body: &log.InputLabels{Input: log.Dot{Writer: 2, Seq: 41}, Labels: []log.Label{{Concept: "soup", Value: log.True}}}},
	}
	entries := wire.Entries{From: 1200, To: 1202, Rows: log.EncodeRows(ops)}
	done := wire.End{Why: wire.WhyDone}
	stream := wire.AppendFrame(nil, wire.TypeEntries, entries.Encode())
	stream = wire.AppendFrame(stream, wire.TypeEnd, done.Encode())

	var r wire.Reader
	for len(stream) > 0 {
		n := min(7, len(stream))
		_, _ = r.Write(stream[:n])
		stream = stream[n:]
		for {
			f, ok, err := r.Next()
			if err != nil {
				fmt.Println(err)
				return
			}
			if !ok {
				break // the next message is incomplete
			}
			fmt.Println(f.Type)
			if f.Type == wire.TypeEntries {
				m, _ := wire.DecodeEntriesFrame(f.Body)
				list, _ := log.DecodeRows(m.Rows, m.From)
				for _, e := range list {
					fmt.Printf("  %d: writer %d, sequence %d, %T\n", e.Seq, e.Op.Dot.Writer, e.Op.Dot.Seq, e.Op.Body)
				}
			}
		}
	}
	// Output:
	// entries
	//   1201: writer 2, sequence 41, *log.InputCreate
	//   1202: writer 2, sequence 42, *log.InputLabels
	// end
}

// An origin refuses a replica that requires features which the origin does not have, and lists them.
func ExampleSession_Agree() {
	s := wire.Session{Min: 1, Max: 2, Schema: 1, Require: []string{"columns", "braids"}}
	_, _, err := s.Agree(wire.Support{Min: 1, Max: 1, Schema: 1, Features: []string{"columns"}})
	fmt.Println(err)
	// Output: unsupported features: braids
}
