// Package log is the ordered log of operations that an application is: everything else about
// it, the state, the index, the copies at edges and in browsers, is made again from here.
//
//	site 1, seq 4 ─┐  dot            at HLC, by key 7f…
//	site 2, seq 9 ─┼─▶ 17  18  19 …  entries: place, chain digest, operation      [Log]
//	site 1, seq 5 ─┘   │       └ appended, its sync under way: nobody sees it
//	                   └ Head: outlives a crash
//
// An operation ([Op]) is one write of one site. Its dot, the site and its place among that
// site's operations, names it for ever; the thing that it creates is named by the dot too, so a
// later thing with the same id is another. A hybrid logical clock ([Clock]; Kulkarni and others,
// 2014) stamps it, by which writes of one field are ordered. What operations do to each other is
// not decided here but by package fold, from their order in the log alone.
//
// Operations are protobuf messages, written without reflection (package field): an operation of a
// later version passes through this one unharmed. [Store] keeps a log in a kv store, on Pebble
// or in memory; a distributed engine takes its place behind [Log] when one machine is outgrown.
// It is no queue and knows no readers: a cursor is its reader's own.
package log

//go:generate go run ./field/gen
