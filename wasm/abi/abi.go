// Package abi has the numbers and the envelopes by which the module and its hosts communicate. wasm/README.md is the contract.
//
//	host                                                          guest
//	AppendRequest ──▶ bytes at reserve's address ──▶ serve ──▶ ParseRequest
//	ParseAnswer  ◀── bytes at the answer's address ◀───────── AppendResponse, AppendJobs
//
// An envelope is a message of package field. Large content (a body, a picture) comes last in its message, or the message can be written
// in parts around it, so that neither side copies it to build an envelope. Results of Parse functions borrow the envelope's bytes.
//
// Errors cross as a code and a text. On the other side errors.Is and the text for a caller are the same as without a boundary in between.
package abi

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/log/field"
)

//go:generate go run ../../core/log/field/gen -tables ../README.md -pages ../../web/runtime/src/envelope.gen.ts

// Version is the result of the export abi.
const Version = 1

// ErrWild is returned for an address or a length that does not lie in the guest's memory. The
// instance is not used again.
var ErrWild = errors.New("range outside the guest's memory")

// ErrVersion is returned for a module of another version than [Version].
var ErrVersion = errors.New("module has a different version of the ABI")

// ErrRemote is the error of a code that this side does not know.
var ErrRemote = errors.New("unknown error of the other side")

// Role is the work of an instance.
type Role uint8

// The roles.
const (
	Engine   Role = 1 // answers requests; its host does the jobs
	Analyser Role = 2 // analyses pictures; knows no application
	Both     Role = 3
)

// StoreKind is the place of an instance's records.
type StoreKind uint8

// The kinds of store.
const (
	StoreLent   StoreKind = 1 // the host's, by the imports kv_ and picture_
	StoreFiles  StoreKind = 2 // the guest's own over the host's files, by the imports file_
	StoreMemory StoreKind = 3 // the guest's memory alone
)

// Answer packs where an answer lies, as exports return it.
func Answer(address, length uint32) uint64 { return uint64(address)<<32 | uint64(length) }

// AnswerAt is the inverse of [Answer].
func AnswerAt(v uint64) (address, length uint32) { return uint32(v >> 32), uint32(v) }

// last appends the tag and the length of a field of n bytes that comes after head: the bytes
// themselves are written behind it. For none it appends nothing.
func last(head []byte, number protowire.Number, n int) []byte {
	if n == 0 {
		return head
	}
	head = protowire.AppendTag(head, number, protowire.BytesType)
	return protowire.AppendVarint(head, uint64(n))
}

// encoder begins an envelope in buf's memory.
func encoder(buf []byte) *field.Encoder {
	var e field.Encoder
	e.Reset(buf)
	return &e
}

// inner returns the fields of a message without the version before them, as a value has them.
func inner[T any](x *T, put func(*field.Encoder, *T)) []byte {
	e := encoder(nil)
	put(e, x)
	return e.Bytes(nil)[1:]
}

// fields reads what inner wrote.
func fields[T any](name string, data []byte, get func(*field.Decoder, *T)) (x T, err error) {
	d := field.Fields(data)
	get(d, &x)
	return x, envelope(name, d)
}
