// Package identity has the identity of a cluster's nodes: their certificates, the file that stores them, and the tokens by which a node joins.
//
//	cluster create ─▶ Create ───────────────▶ File ─▶ DIR/cluster.json ─▶ Credentials ─▶ TLS on the node port
//	cluster token  ─▶ NewToken ─▶ one line      ▲                      └▶ WriteTLS ────▶ files for etcd and etcdctl
//	cluster join   ─▶ ParseToken ─▶ NewJoin     │
//	                      │ JoinRequest         │ Accept
//	                      ▼                     │
//	                node of the token: Admit ─▶ JoinResponse
//
// A cluster has one certificate authority, and each node has its key, so that each node can admit another one. A certificate names its owner by
// a SPIFFE ID, spiffe://CLUSTER/ROLE/NODE, as service meshes do. The common name is the role, because etcd can require a common name. There are
// two roles: a node may connect to all three ports, and the operator of a node to etcd's client port only.
//
// TLS has version 1.3 on all ports. Every connection between nodes verifies both certificates. Only the request to join has no client
// certificate: the token's secret authenticates it, and the token's fingerprint of the authority authenticates the server.
//
// The package has no network and no clock. Its caller sends the requests, and stores the hashes of the secrets of valid tokens in etcd.
package identity
