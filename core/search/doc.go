// Package search answers queries over an application's inputs: clauses become a sum type, the
// sum type a plan, the plan hits.
//
//	JSON ──Parse──▶ Query ──Run──┬─ input clauses ──▶ bitmaps ──AND──▶ matches ──▶ hits, score 1, by creation
//	                  │          └─ output clauses ─▶ values of the matches ─────▶ hits by score
//	   pictures to analyse first
//
// Bitmaps come first and cost little; what ranks is computed for what they leave. Similarity
// scans few matches exactly and walks the graph, filtered, for many.
package search
