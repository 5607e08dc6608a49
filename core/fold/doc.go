// Package fold turns a log into a state. Its rules merge the operations of several sites, some of them written offline, into one state that
// is the same wherever the log is folded.
//
//	entry 17 ──Apply──▶ records in an overlay ──▶ one batch: state, index, cursor
//	              │
//	              ├──▶ Verdict   ok, superseded, duplicate, gone, stale, refused
//	              └──▶ Change    an input before and after, for the index
//
// The rules, in short:
//
//   - An operation whose name, its dot, was folded before does nothing. Names may have gaps, see [RulesOfNames].
//   - The order of the log decides which input gets an id or a URL. A new input replaces one that failed.
//   - An input's incarnation is the dot that created it. Deleting ends it for ever, also if the deletion comes first: the verdict
//     on a later write to it is gone, whatever its clock, and the write never creates anything.
//   - Labels, paths of metadata, place, names, settings, memberships and edited outputs are
//     LWW registers: the write with the highest (clock, site) wins, in any order of the log.
//   - A status only changes from 30001 or from 21103. The result of a training must hold its lease.
//   - A concept exists from its first use. It can be deleted while nothing uses it, and its next use creates it again.
//   - A horizon drops removals below it, and refuses writes below it: stale.
//
// Version 2 has four more. A concept delete has no effect if something uses the concept, or a later write named it. An edit of a prediction
// creates its concepts. A version that was trained again for another network has the detail of its result. An input fetched with a picture makes
// an input ready that ended at 30101, 30105 or 30300; every other result for an input that has ended has no effect.
//
// By version 3 the names in the log decide which things live, and not their order:
//
//   - An operation with its clock or its made clock below the horizon is stale. Deletions, rules and refused operations always count.
//   - A deletion whose thing was not folded yet is kept, and the thing is superseded when it comes.
//   - A deletion of all inputs names the newest input of each writer that its maker saw. It deletes these and all earlier inputs of these
//     writers, also those that come later, which are gone. Without these names it deletes the inputs before it in the log, like version 1.
//   - A horizon drops the kept deletions below it, and the names of a writer if all its clocks are below. Sites of version 0.1.0 stay.
//
// Version 4 records contradictions ([RulesOfContradictions]): writes to one register whose makers did not see each other's. It changes no value.
//
// The same rules fold a replica's operations that are not in the log yet over its state ([NewPending]). When more of the log comes, the
// replica undoes them. Only the ordinals of their inputs differ from those that the log will give.
//
// The fold is pure. It uses no clock, no random source and no order of a map, so natively, under wazero and in a browser it gives the same
// bytes ([Digest]). It neither appends nor syncs: package partition drives it. It deletes inputs and models by key ranges, whose cost does
// not depend on their content.
package fold
