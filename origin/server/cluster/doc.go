// Package cluster is one node of an origin that has several machines. One node writes, and the others follow it and can take over:
//
//	client ─▶ any node ─ forwards ─▶ the node that leads ─ Commit ─▶ channel ─▶ etcd ─▶ channel of every node ─▶ its store and engine
//
//	HOST:PORT     calls of other nodes, checkpoints, joining                 this package
//	HOST:PORT+1   members of etcd                                            package member
//	HOST:PORT+2   clients of etcd
//
// etcd elects, orders and replicates. A node whose member leads etcd claims to write; see package channel. The first three nodes are members of
// etcd. A node that joins copies the store of another node, follows, and becomes a learner of etcd. Two learners that follow become members
// together, so that the number of members is odd.
//
// A read is answered after etcd has confirmed the claim of the node that answers, so no answer is old. No clock takes part.
//
// Only the origin's program imports this package, so that the edge's program does not grow.
package cluster
