// Package catalog stores the data of an application as typed records in a [kv.Store]: inputs, concepts, models and their versions,
// workflows and feedback. In the control partition it stores applications and keys.
//
//	log ──fold──▶ Writer ──▶ records and their index keys              keys.go has the page
//	                               │
//	             snapshot ──▶ Reader ──▶ Input, Concept, Model, …
//
// A record is a protobuf message after a version byte (package log/field). Every mutable field has the stamp of its last write, since
// writes of other sites may still arrive. A removal is also a write. The fold drops it once it is older than the horizon. Metadata ([Meta])
// keeps the newest write of each path, byte for byte.
//
// The store also caches results: derived records (the results of a network for a picture and crop, with the same bytes
// on every host) and objects by their hash (manifests of trained versions). The batch of the operation that needs a result writes it.
// [Tidy] deletes unreferenced results in steps.
//
// The package does not interpret operations; package fold does.
package catalog

//go:generate go run ../log/field/gen
