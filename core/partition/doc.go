// Package partition is one application in one process: its log, the state that is folded
// from it, and its index, behind one way in.
//
//	Submit ──▶ number, stamp ──▶ log: one synced batch, shared with others' syncs
//	                                 │ durable
//	                                 ▼
//	           verdicts ◀── fold a run of entries ──▶ records, index, cursor: one unsynced batch
//	                                                       │
//	                                            View: a snapshot of all of it
//
// A write is acknowledged when its entries outlive a crash and their effect can be read. Only
// durable entries are folded, so no reader ever sees what a crash could take back; and the
// state's batch needs no sync of its own, since the log gives it again: [Open] folds from the
// cursor, which is in the batch. While one Submit folds, others' syncs run, and the first of them
// through the lock folds for all.
//
// A replica ([Options.Replica]) is a partition whose log is another's. What is submitted to it waits in an
// outbox, in the place where a log would be, whose entry n is operation n of the replica's site:
//
//	Submit ──▶ outbox: one synced batch ──▶ fold over the state ──────▶ records, undo records: unsynced
//	             │                                                            │
//	          Pending ──push──▶ origin's log ──Pull──▶ take back, fold entries, fold what is pending again
//	                                                     │      all of it, and the cursor, in one batch
//	                                     verdicts, conflicts
//
// So a reader sees the log up to the cursor and its own writes on top, at any moment and after any
// crash; and without what the undo records take back ([Partition.Confirmed]) the state is that of the log,
// byte for byte, which is what digests compare. Nothing is merged: an operation of ours that the log
// has is folded as the log has it, and its verdict there is the last word. [Partition.Rebase] takes
// a snapshot in the place of entries.
//
// Nothing here is a goroutine and nothing waits but for a sync: work that is left for later, of the index
// and of tidying, is done by [Partition.Step], which the host calls.
package partition

//go:generate go run ../log/field/gen
