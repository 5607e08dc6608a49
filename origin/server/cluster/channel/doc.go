// Package channel is the store of a node in a cluster: a [kv.Store] whose Commits etcd orders. It decides which batch comes next, and which
// node may write. The log, the state and all other data are in the node's own store, as without a cluster.
//
//	Commit ─▶ queue ─▶ record ─▶ If primary is mine and log is at n: Put(log)  ─▶ etcd ─▶ watch of every node ─▶ Show ─▶ own store
//	Apply ─────────────────────────────────────────────────────────────────────────────────────────────────────────────▶ own store
//
// etcd has two keys of a cluster. Each write is a new version of one key, and etcd keeps the older ones until a compaction:
//
//	0/primary   the node that writes, and the start of its process. A change is a claim; its revision is the term
//	0/log       the newest record
//
// A node leads from the moment when its own watch shows its claim, because it has applied everything before then. It sends one transaction at a
// time, and sends it again as long as it has no answer: the guards prevent a second success. If the watch shows the claim of another node, a
// record that the watch has not shown can never succeed, so its batches were not written and never will be.
//
// A node applies what its watch shows, its own records included, and stores the position in the same batch. No batch is synced here: what a
// power failure takes, the watch shows again. So etcd may compact only what the living nodes have synced.
//
// [Store] is one node's part without a network: its caller sends transactions and passes on the events of a watch. [Driver] is this caller, with a
// client of etcd.
package channel
