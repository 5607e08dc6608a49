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
// Nothing here is a goroutine and nothing waits but for a sync: work that is left for later, of the index
// and of tidying, is done by [Partition.Step], which the host calls.
package partition
