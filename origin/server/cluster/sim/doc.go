// Package sim simulates a cluster of three nodes: one goroutine, random schedules, and all that decides in between is real.
//
//	calls, an edge ─▶ node: accounts, engine, register, partitions ─▶ channel.Store ─▶ disk that loses its unsynced end
//	                                                                       ▲  │
//	                                          watch: late, again, with gaps│  ▼ transactions: late, twice, without an answer
//	                                                                    model of etcd: revisions, versions, compaction
//
// The driver of package channel, with its goroutines, is not part of a run: the world sends the store's transactions and shows it the events.
//
// All runs begin with the store of a backup, whose log lacks entries that one replica has. The replica gives them back, and the log lists them
// as conflicts. A node may stop at any moment for any time, lose its power, lose its claim, or copy the disk of another node. Afterwards, and
// in between, the run checks:
//
//   - An acknowledged write is in every log, and its effect in every state. A write that got kv.ErrFollows is in none.
//   - No number occurs twice in a list to which clients append. They repeat only calls that got kv.ErrFollows.
//   - A term has one primary. A claim deposes only a primary that its node has seen. No name has two contents.
//   - States and lists of conflicts are equal at equal positions. No node lists a conflict again that was dismissed.
//   - A read sees every write that ended before the read began. An edge that was in the log is in it.
//   - No account gets more calls than its plan has. The audit log of accounts has no gap.
package sim
