// Package log implements the ordered log of operations of an application. Everything else can be rebuilt from it: the state, the index,
// and the copies at edges and in browsers.
//
//	writer 1, seq 4 ─┐  dot            at HLC, by key 7f…
//	writer 2, seq 9 ─┼─▶ 17  18  19 …  entries: place, chain digest, operation      [Store]
//	writer 1, seq 5 ─┘   │       └ appended, its sync is running: no reader sees it
//	                     └ Head: survives a crash
//
// An operation ([Op]) is one write of one writer. Its dot, the writer and the place among that writer's operations, is its permanent name. The
// dot also names the thing that the operation creates, so a later thing with the same id is a different one. A hybrid logical clock
// ([Clock]; Kulkarni and others, 2014) stamps the operation and orders writes of one field. Package fold decides the effect of
// operations, from their order in the log alone.
//
// Operations are protobuf messages, written without reflection (package field). This version keeps unknown operations and fields of a
// later version. [Store] keeps a log in a kv store, on Pebble or in memory. A log is not a queue and does not know its readers: each reader
// keeps its cursor.
package log

//go:generate go run ./field/gen
