// Package partition runs one application in one process: its log, the state that results from folding the log, and its index.
//
//	Submit ──▶ number, stamp ──▶ log: one batch, whose sync concurrent calls share
//	                                 │ durable
//	                                 ▼
//	           verdicts ◀── fold a run of entries ──▶ records, index, cursor: one unsynced batch
//	                                                       │
//	                                            View: a snapshot of all of it
//
// A write is acknowledged when its entries survive a crash and their effect is visible. Only durable entries are folded, so no reader
// sees an effect that a crash could undo. The batch of the state needs no sync, since the state can be folded again: opening folds from
// the cursor, which is in the batch. While one Submit folds, others sync, and the first of them that gets the lock folds for all.
//
// In a cluster one machine writes, and the origins of the others follow it: follow.go has how.
//
// A partition is of one of two kinds. An [Origin] has its own log. A [Replica] follows the log of an Origin elsewhere. Its submitted
// operations wait in an outbox instead of a log. Entry n of the outbox is the operation at position n, of one of the writers that the store has had:
//
//	Submit ──▶ outbox: one synced batch ──▶ fold over the state ──────▶ records, undo records: unsynced
//	             │                                                            │
//	          Pending ──push──▶ origin's log ──Pull──▶ undo, fold entries, fold pending operations again
//	                                                     │      all of it, and the cursor, in one batch
//	                                     verdicts, conflicts
//
// So a reader always sees the log up to the cursor and the replica's writes on top of it, also after a crash. Without the changes that
// the undo records revert ([Replica.ReadConfirmed]), the state equals that of the log up to the cursor, byte for byte: digests agree.
// Pull merges nothing: it folds an operation of this replica as the log has it, and that verdict is final.
// [Replica.Rebase] installs a snapshot instead of folding entries.
//
// The package starts no goroutine and waits only for syncs. The host calls [Partition.Step], which does postponed work: it updates the
// index and cleans up.
package partition

//go:generate go run ../log/field/gen
