// Package sim runs whole schedules of the sync protocol in one goroutine: one origin and three to five replicas, each with its disk and
// its clock. They write, and lose messages, power and clocks. An oracle that knows everything checks them.
//
//	program ──writes──▶ replica 0 ─┐                         ┌─▶ disk, clock, power
//	        ──writes──▶ replica 1 ─┼─ network: lost, late, ──┤
//	        ──writes──▶ replica 2 ─┘  twice, cut anywhere    └─▶ origin: feed, partition, register
//	             │                          │                        │
//	             └──── promised ────▶    oracle   ◀──── every entry ─┘
//
// A seed determines a run: the same seed does the same things in the same order. The parties are the real ones: package replica's Machine
// over a partition, package feed's Serve over another and the register of core. No socket, goroutine or clock of the host takes part. The
// simulator provides the rest: a [Disk] that fills up and loses power between any two of its operations, a network with the faults of
// networks, and clocks that are set by twenty seconds either way.
//
// The oracle keeps each entry that ever survived a crash. It folds it by package fold and also by a naive model that shares no code with
// the fold, and knows the promises of each party. It checks the invariants I1 to I10 of the protocol, at random moments and after all
// faults, when everybody must agree within a bounded number of rounds. [Run] returns the first violation.
//
// The simulator is not a benchmark, and proves nothing about cases that it does not have: two origins, or a disk that lies.
package sim
