// Package search answers queries over an application's inputs. It turns clauses into a sum type, the sum type into a plan, and the plan
// into hits.
//
//	JSON ──Parse──▶ Query ──Run──┬─ input clauses ──▶ bitmaps ──AND──▶ matches ──▶ hits, score 1, by creation
//	                  │          └─ output clauses ─▶ values of the matches ─────▶ hits by score
//	   pictures to analyse first
//
// Bitmaps come first and cost little. A search computes scores only for the remaining inputs. A similarity search compares every
// match if they are few. If they are many, it walks the graph with the bitmap as a filter.
package search
