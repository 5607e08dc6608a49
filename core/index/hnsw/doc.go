// Package hnsw is an approximate nearest neighbour index: the layered small-world graph of
// Malkov and Yashunin (2018, arXiv:1603.09320) over vectors of int16 with one scale each.
//
//	level 2      a ───────────── e
//	level 1      a ───── c ───── e ───── h
//	level 0      a ─ b ─ c ─ d ─ e ─ f ─ g ─ h
//
// A search enters at the top, walks greedily down, and widens to ef candidates at level 0. The walk
// measures on the high bytes of the vectors alone; the last candidates are ranked by
// all 16 bits ([kernel]).
//
// Nodes are numbers of the caller's, dense with holes. Inside, each has a slot, and slots are used
// again, so memory follows what is live:
//
//	slot      0         1         2         3
//	node      7         –         12        9†      † tombstone, – free
//	high      ▒▒▒▒      ▒▒▒▒      ▒▒▒▒      ▒▒▒▒    bytes the walk reads, 64-byte lines
//	low       ░░░░      ░░░░      ░░░░      ░░░░    bytes that only ranking reads
//	level 0   2 3 – –   – – – –   0 3 – –   0 2 – – 2·M links
//	above                         2 – | – –         M links for each level, only where there are any
//
// Links are chosen by the paper's heuristic, filled up with the nearest of what it prunes. A
// link of level 0 is dropped only where a detour of two links remains, so the graph stays in
// one piece. Levels come from a hash of the node's number and equals are ordered, so
// the same changes give the same graph on every host.
//
// Deleting leaves a tombstone, which is never returned. Those that led to it get other links at once,
// and one of them, the hub, reaches all that it led to: mostly over others, for a link made to that end
// takes the place of a better one. A slot whose link to the tombstone was not known
// reaches the hub through it, until [Graph.Compact] collects it in steps. One of those that led to it
// chooses its links again with each delete, so a graph whose nodes are replaced does not age.
//
// A filtered search is planned: few matches are scanned exactly, many filter the
// walk, which then looks behind excluded neighbours as ACORN does (Patel and others 2024,
// arXiv:2403.04871).
//
// A store keeps the graph as pages of links; README.md specifies them. The caller keeps the vectors. The graph
// can be built from the vectors again, so any doubt about its pages is
// [ErrCorrupt].
//
// It is no store of vectors, starts no goroutines, and knows nothing of inputs or concepts.
package hnsw
