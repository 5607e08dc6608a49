// Package wire is what a replica and its origin say to each other: the messages of the sync
// protocol, the frames of a stream and the columnar blocks that hold operations. The
// specification is sync/README.md; this is its code.
//
//	session ──▶ ◀── offered            push ──▶ ◀── pushed            have ──▶ ◀── had
//	changes ──▶ ◀── frame frame frame …
//	             ┌───────────────┬──────┬─────────────────────┐
//	             │ length, 4, LE │ type │ body, at most 256 K │
//	             └───────────────┴──────┴─────────────────────┘
//
// A message is a message of package field: a version byte, then fields in the protobuf wire
// format. Fields that a later version added are kept, and written again when the message is
// sent on. Decoding never panics, checks every range, and takes memory in proportion to what
// it was given.
//
// Nothing here reads a socket, compresses or decides: HTTP compresses, package feed answers
// and package replica asks.
package wire

//go:generate go run ../../core/log/field/gen -tables ../README.md
