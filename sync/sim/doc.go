// Package sim simulates the sync protocol in one goroutine: one origin and three to five replicas, each with its disk and its clock. They
// write while the network loses messages, power fails and clocks jump. An oracle that sees all parties checks them.
//
//	program ──writes──▶ replica 0 ─┐                         ┌─▶ disk, clock, power
//	        ──writes──▶ replica 1 ─┼─ network: lost, late, ──┤
//	        ──writes──▶ replica 2 ─┘  twice, cut anywhere    └─▶ origin: feed, partition, register
//	             │                          │                        │
//	             └── acknowledged ──▶    oracle   ◀──── every entry ─┘
//
// A seed determines a run: the same seed causes the same events in the same order. The parties run the real code: package replica's Machine
// over a partition, package feed's Serve over another and the register of core. No socket, goroutine or clock of the host takes part. The
// simulator provides the rest. A [Disk] fills up, and loses power between any two of its operations. The network loses, delays, repeats and
// cuts messages. Clocks are up to twenty seconds fast or slow.
//
// The oracle stores each entry that ever survived a crash. It folds the entry with package fold and with a naive model that shares no code
// with the fold. It also records the operations that each party acknowledged. It checks the invariants I1 to I10 of core/testkit/laws.md at
// random moments and after all faults. Then all parties must agree within a bounded number of rounds. [Run] returns the first violation.
//
// The simulator is not a benchmark. It proves nothing about cases that it does not simulate, such as two origins or a disk that loses
// synced data.
package sim
