// Package index finds an application's inputs: by label, prediction, metadata, place and similarity. It is a projection of the fold's
// state, changed in the same batch of the store.
//
//	fold ──changes──▶ Stage ──▶ postings, rows, intents        one batch with the state; ConfirmStage follows
//	                              │
//	                  Step ◀──────┘  graph ◀ intents in order; columns ◀ rows, a block of 1,024 at a time
//	                   │
//	searches ──At──▶ View    postings ∧ ∨ ¬ ──▶ inputs ──▶ values, similarities
//
// Every input has a dense ordinal, which grows with creation. So a set of inputs is a bitmap of ordinals, and its order is the order of
// creation. Sets are stored in chunks that a search reads from its snapshot (posting.go has the reason). So nothing is loaded at the
// start, and a search sees the state of one moment. The graph and the values of custom concepts, which never change, are in memory. A
// search also scans the rows that the graph lacks.
//
// The data of a base model are in a space named by the model's hash. A search never mixes two spaces. While the index fills a second space,
// searches use the first. Then the second replaces the first at once.
//
// The index neither ranks nor parses queries; package search does.
package index
