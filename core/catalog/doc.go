// Package catalog is what an application holds, as typed records over a [kv.Store]: inputs,
// concepts, models and their versions, workflows, feedback, and in the control partition applications
// and keys.
//
//	log ──fold──▶ Writer ──▶ records and the keys that lead to them    keys.go has the page
//	                               │
//	             snapshot ──▶ Reader ──▶ Input, Concept, Model, …
//
// A record is a protobuf message after a version byte (package log/field). Every mutable field of one
// carries the stamp of its last write, since writes of other sites may still arrive; a
// removal is such a write, and is dropped once the horizon has passed it. Metadata ([Meta]) keeps
// the newest write of each path as the bytes that came.
//
// Beside the records stand what can be computed again: derived records (what a network made
// of a picture and crop, the same bytes wherever) and objects by their hash (manifests of
// trained versions). They come in the batch of the operation that needs them and go, in steps, when no
// record leads to them any more ([Tidy]).
//
// The package decides nothing about operations: what they mean is package fold's.
package catalog

//go:generate go run ../log/field/gen
