// Package search answers queries over an application's inputs. It turns clauses into a sum type, the sum type into a plan, and the plan
// into hits.
//
//	JSON ──Parse──▶ Query ──Run──┬─ input clauses ──▶ bitmaps ──AND──▶ matches ──▶ hits, score 1, by creation
//	                  │          └─ output clauses ─▶ values of the matches ─────▶ hits by score
//	   pictures to analyse first
//
// Bitmaps come first and cost little; scores are computed only for the remaining inputs. Similarity scans few matches exactly and walks
// the graph, filtered, for many.
package search
