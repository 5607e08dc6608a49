// Package sim simulates a cluster of three nodes: one goroutine, random schedules, and all that decides in between is real.
//
//	calls, an edge ─▶ node: accounts, engine, register, partitions ─▶ channel.Store ─▶ disk that loses its unsynced end
//	                                                                       ▲  │
//	                                          watch: late, again, with gaps│  ▼ transactions: late, twice, without an answer
//	                                                                    model of etcd: revisions, versions, compaction
//
// A node may stop at any moment for any time, lose its power, lose its claim, or copy the disk of another node. Afterwards, and in between, the
// run checks:
//
//   - An acknowledged write is in every log, and its effect in every state. A write that got kv.ErrFollows is in none.
//   - A term has one primary. No name has two contents.
//   - States are equal at equal positions.
//   - A read sees every write that ended before the read began. An edge that was in the log is in it.
//   - No account gets more calls than its plan has. The audit log of accounts has no gap.
package sim
