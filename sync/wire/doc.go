// Package wire implements the messages of the sync protocol between a replica and its origin, the frames of a stream and the columnar
// blocks of operations. The specification is sync/README.md.
//
//	session ──▶ ◀── offered            push ──▶ ◀── pushed            have ──▶ ◀── had
//	changes ──▶ ◀── frame frame frame …
//	             ┌───────────────┬──────┬─────────────────────┐
//	             │ length, 4, LE │ type │ body, at most 256 K │
//	             └───────────────┴──────┴─────────────────────┘
//
// A message is a message of package field: a version byte, then fields in the protobuf wire format. Decoding keeps fields of later
// versions, and encoding writes them again. Decoding never panics, checks every range, and its memory is proportional to the input.
//
// The package uses no socket, does not compress and does not decide: HTTP compresses, package feed answers and package replica asks.
package wire

//go:generate go run ../../core/log/field/gen -tables ../README.md
