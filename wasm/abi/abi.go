// Package abi defines the numbers and the envelopes that the module and its hosts exchange. wasm/README.md is the contract.
//
//	host                                                          guest
//	AppendRequest ──▶ bytes at reserve's address ──▶ serve ──▶ ParseRequest
//	ParseServeResult  ◀── bytes at the answer's address ◀───────── AppendResponse, AppendJobs
//
// An envelope is a message of package field. Large content (a body, a picture) comes last in its message, or the message can be written
// in parts around it, so that neither side copies it to build an envelope. Results of Parse functions share the envelope's memory.
//
// An error crosses as a code and a text. On the other side, errors.Is and the text for a caller are the same as without the boundary.
package abi

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/log/field"
)

//go:generate go run ../../core/log/field/gen -tables ../README.md -pages ../../web/runtime/src/envelope.gen.ts

// Version is the result of the export abi.
const Version = 1

// ErrRange is returned for an address or a length outside the guest's memory. The host does not use the instance again.
var ErrRange = errors.New("range outside the guest's memory")

// ErrVersion is returned for a module with another ABI version than [Version].
var ErrVersion = errors.New("module has a different version of the ABI")

// ErrRemote is the error for a code that this side does not know.
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
	StoreHost   StoreKind = 1 // the host's store, through the imports kv_ and picture_
	StoreFiles  StoreKind = 2 // the guest's store in the host's files, through the imports file_
	StoreMemory StoreKind = 3 // the guest's memory alone
)

// Answer packs the address and the length of an answer into the value that an export returns.
func Answer(address, length uint32) uint64 { return uint64(address)<<32 | uint64(length) }

// AnswerAt is the inverse of [Answer].
func AnswerAt(v uint64) (address, length uint32) { return uint32(v >> 32), uint32(v) }

// last appends to head the tag and the length of a field of n bytes. The caller writes the bytes after it. If n is 0, last appends nothing.
func last(head []byte, number protowire.Number, n int) []byte {
	if n == 0 {
		return head
	}
	head = protowire.AppendTag(head, number, protowire.BytesType)
	return protowire.AppendVarint(head, uint64(n))
}

// encoder returns an encoder of an envelope that reuses buf's memory.
func encoder(buf []byte) *field.Encoder {
	var e field.Encoder
	e.Reset(buf)
	return &e
}

// inner returns the encoded fields of x without the version byte, as the value of a reply or an import has them.
func inner[T any](x *T, put func(*field.Encoder, *T)) []byte {
	e := encoder(nil)
	put(e, x)
	return e.Bytes(nil)[1:]
}

// fields decodes the output of inner. name is for the error, which wraps field.ErrFormat.
func fields[T any](name string, data []byte, get func(*field.Decoder, *T)) (x T, err error) {
	d := field.Fields(data)
	get(d, &x)
	return x, envelope(name, d)
}
