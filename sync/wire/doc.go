// Package wire encodes and decodes the messages of the sync protocol between a replica and its origin, and the frames of a
// stream. The specification is sync/README.md.
//
//	Session ──▶ ◀── SessionReply       Push ──▶ ◀── Pushed       HaveRequest ──▶ ◀── HaveReply
//	changes ──▶ ◀── frame frame frame …
//	             ┌───────────────┬──────┬─────────────────────┐
//	             │ length, 4, LE │ type │ body, at most 256 K │
//	             └───────────────┴──────┴─────────────────────┘
//
// A message has the format of package field: a version byte, then fields in the protobuf wire format. Decoding stores fields of later
// versions in Extra, and encoding writes them again. Decoding never panics and checks every range. Its memory is proportional to the
// input.
//
// The package opens no connection, does not compress and makes no decisions. Package replica sends requests. Package feed answers them and
// compresses the answers.
package wire

//go:generate go run ../../core/log/field/gen -tables ../README.md
