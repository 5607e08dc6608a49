// Package hnsw is an approximate nearest neighbour index: the layered small-world graph of Malkov and Yashunin (2018, arXiv:1603.09320)
// over vectors of int16 with one scale each.
//
//	level 2      a ───────────── e
//	level 1      a ───── c ───── e ───── h
//	level 0      a ─ b ─ c ─ d ─ e ─ f ─ g ─ h
//
// A search enters at the top, walks greedily down, and widens to ef candidates at level 0. The walk measures only the high bytes of the
// vectors; the last candidates are ranked by all 16 bits ([kernel]).
//
// The caller numbers the nodes, densely but with holes. Internally each node has a slot. Slots are reused, so the memory is proportional to
// the live nodes:
//
//	slot      0         1         2         3
//	node      7         –         12        9†      † tombstone, – free
//	high      ▒▒▒▒      ▒▒▒▒      ▒▒▒▒      ▒▒▒▒    bytes the walk reads, 64-byte lines
//	low       ░░░░      ░░░░      ░░░░      ░░░░    bytes that only ranking reads
//	level 0   2 3 – –   – – – –   0 3 – –   0 2 – – 2·M links
//	above                         2 – | – –         M links for each level, only where there are any
//
// Links are chosen by the paper's heuristic, filled up with the nearest of those that it prunes. A link of level 0 is dropped only if a
// detour of two links remains, so the graph stays connected. Levels come from a hash of the node's number and ties have an order, so the
// same changes give the same graph on every host.
//
// Deleting leaves a tombstone, which no search returns. Slots that led to it get other links at once. One of them, the hub, reaches
// everything that the tombstone led to, mostly over other slots, since a direct link would replace a better one. A slot with an unknown
// link to the tombstone reaches the hub through it, until [Graph.Compact] collects the tombstone in steps. With each fourth delete, one
// of the slots that led to the tombstone chooses its links again, so a graph whose nodes are replaced does not degrade.
//
// A filtered search is planned: few matches are scanned exactly, many filter the walk, which then looks behind excluded neighbours as
// ACORN does (Patel and others 2024, arXiv:2403.04871).
//
// A store keeps the graph as pages of links; README.md specifies them. The caller keeps the vectors. The graph can be built from the
// vectors again, so [Open] returns [ErrCorrupt] at any doubt about the pages.
//
// The package stores no vectors, starts no goroutines, and does not know inputs or concepts.
package hnsw
