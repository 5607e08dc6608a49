// Package index finds an application's inputs: by label, prediction, metadata, place and
// similarity. It is a projection of the fold's state, changed in the same batch of the store.
//
//	fold ──changes──▶ Stage ──▶ postings, rows, intents        one batch with the state; Applied follows
//	                              │
//	                  Step ◀──────┘  graph ◀ intents in order; columns ◀ rows, a block of 1,024 at a time
//	                   │
//	searches ──At──▶ View    postings ∧ ∨ ¬ ──▶ inputs ──▶ values, similarities
//
// Every input has a dense ordinal, which grows with creation: a set of inputs is a bitmap of
// ordinals, its order the order of creation. Sets are kept in chunks that a search reads from its own snapshot (posting.go
// says why), so nothing is loaded at the start, and what a search sees is the state of one moment. In memory are
// the graph, which searches complete by what it lacks, and values of own concepts, which never change.
//
// What comes from a base model lives in a space named by the model's hash. Two spaces are never mixed. A second
// one is filled while the first serves, and then takes its place at once.
//
// The index ranks nothing and reads no queries: package search does.
package index
