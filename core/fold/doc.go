// Package fold turns a log into a state: the rules by which operations of several sites,
// some of them written without a network, become one truth that is the same wherever it is
// folded.
//
//	entry 17 ──Apply──▶ records in an overlay ──▶ one batch: state, index, cursor
//	              │
//	              ├──▶ Verdict   ok, superseded, duplicate, gone, stale, refused
//	              └──▶ Change    what became of an input, for the index
//
// The rules, in short:
//
//   - A site's operations count from 1 without gaps. One that was folded before does nothing.
//   - Who has an id, or a URL, is decided by the order of the log. An input that failed is replaced.
//   - An input's incarnation is the dot that created it. Deleting kills it for ever; a
//     write to it after that is gone, whatever its clock says, and never makes anything.
//   - Labels, paths of metadata, place, names, settings, memberships and edited outputs are
//     registers: the write with the highest (clock, site) wins, in any order of the log.
//   - Status only moves on from 30001, and from 21103; a training's result must hold its lease.
//   - A horizon drops removals below it, and refuses writes of fields below it: stale.
//
// Operations of a replica that are not in the log yet are folded over its state by the same rules
// ([NewPending]), and taken back when more of the log comes; only the ordinals of their inputs are
// not those that the log will give.
//
// The fold is pure. It asks no clock and no random source and leaves nothing to the order of a
// map, so natively, under wazero and in a browser it gives the same bytes ([Digest]).
// It neither appends nor syncs: package partition drives it. Deletions of everything are deletions of key
// ranges, whose cost does not depend on what they delete.
package fold
