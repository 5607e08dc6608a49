// Package member runs this node's member of the cluster's etcd: one server in the process, its options, its files of certificates and its log.
//
// etcd decides the order of the cluster's records and which node may write. Members find each other by their addresses:
//
//	HOST:PORT      the node's port, for calls of other nodes
//	HOST:PORT+1    etcd's port for members
//	HOST:PORT+2    etcd's port for clients: other nodes and etcdctl
//
// All three accept only certificates of the cluster's authority. The calls of the same process use no port.
package member
