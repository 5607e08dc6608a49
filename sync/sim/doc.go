// Package sim runs whole schedules of the sync protocol in one goroutine: one origin and three to
// five replicas, each with its own disk and its own idea of the time, write, lose messages, power
// and clocks, and are watched by somebody who knows everything.
//
//	program ──writes──▶ replica 0 ─┐                         ┌─▶ disk, clock, power
//	        ──writes──▶ replica 1 ─┼─ network: lost, late, ──┤
//	        ──writes──▶ replica 2 ─┘  twice, cut anywhere    └─▶ origin: feed, partition, register
//	             │                          │                        │
//	             └──── promised ────▶    oracle   ◀──── every entry ─┘
//
// A seed is a run: the same seed does the same things in the same order. The parties are the
// real ones: package replica's Machine over a partition, package feed's Serve over another and the
// register of core; no socket, goroutine or clock of the host has a part in it. What they stand on is
// made here: a [Disk] that fills up and loses power between any two of its operations, a network that does
// what networks do, and clocks that are set by twenty seconds either way.
//
// The oracle keeps each entry that ever outlived a crash, folds it by package fold and also
// by a naive model that shares no code with the fold, and knows what each party has promised. It
// holds everybody to the invariants I1 to I10 of the protocol, at random moments and once all faults have
// ended and all should agree within a bounded number of rounds. [Run] returns the first that was broken.
//
// It is no benchmark, and it proves nothing about what it does not do: two origins, or a disk that lies.
package sim
