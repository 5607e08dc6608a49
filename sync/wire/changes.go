package wire

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Entries is a run of consecutive log entries, after From and up to To.
//
//field:message
//field:reserved 6
type Entries struct {
	Epoch log.Epoch `wire:"1"` // epoch of all of the entries
	From  uint64    `wire:"2"` // cursor of the reader; the entries follow it
	To    uint64    `wire:"3"` // last entry of the run: `from` + count
	Chain log.Chain `wire:"4"` // chain of the log at `to`
	Rows  []byte    `wire:"5"` // the operations; see *Rows*
	// HMAC-SHA-256 over the application, `to` and `chain`. Its key belongs to the log and is in the log's backups, so a restored origin
	// recognises its log up to `to`. Absent: this run is not sealed. See *Give back*
	Seal   []byte    `wire:"7"`
	Before log.Chain `wire:"8"` // chain of the log at `from`
	Extra  []byte    `wire:"*"`
}

// Encode returns the message.
func (m *Entries) Encode() []byte { return encodeEntries(nil, m) }

// DecodeEntriesFrame reads an Entries, whose Rows borrow data. Errors: ErrFormat.
func DecodeEntriesFrame(data []byte) (Entries, error) { return decodeEntries(data) }

// Derived contains results of analysing pictures with one base model.
//
//field:message
type Derived struct {
	Base    [32]byte        `wire:"1"`                // hash of the base model, see predict.Set.Base
	Records []DerivedRecord `wire:"2,max=maxRecords"` // a record for each picture and crop
	Extra   []byte          `wire:"*"`
}

// DerivedRecord is the derived record of one picture and crop.
type DerivedRecord struct {
	Blob   blob.Hash   `wire:"1"`
	Crop   raster.Crop `wire:"2"`
	Record []byte      `wire:"3"` // bytes as stored in the catalog
}

// Encode returns the message.
func (m *Derived) Encode() []byte { return encodeDerived(nil, m) }

// DecodeDerived reads a Derived, whose records borrow data. Errors: ErrFormat.
func DecodeDerived(data []byte) (Derived, error) { return decodeDerived(data) }

// Object is a chunk of an object that is named by its hash, such as a version's manifest or weights. The origin sends the chunks in order,
// from offset 0 to Size.
//
//field:message
type Object struct {
	Hash   blob.Hash `wire:"1"` // SHA-256 of the complete object
	Size   uint64    `wire:"2"` // bytes of the complete object
	Offset uint64    `wire:"3"` // offset of this chunk in the object
	Data   []byte    `wire:"4"`
	Extra  []byte    `wire:"*"`
}

// Encode returns the message.
func (m *Object) Encode() []byte { return encodeObject(nil, m) }

// DecodeObject reads an Object, whose Data borrows data. Errors: ErrFormat.
func DecodeObject(data []byte) (Object, error) {
	m, err := decodeObject(data)
	if end := m.Offset + uint64(len(m.Data)); err == nil && (end < m.Offset || end > m.Size) {
		err = fmt.Errorf("%w: chunk beyond the end of its object", ErrFormat)
	}
	return m, err
}

// AppRecord is the part of the control log that a replica needs for one application: its record, keys, client and edges. It includes
// the control log up to entry Seq.
//
//field:message
type AppRecord struct {
	App   string `wire:"1"` // id of the application
	Seq   uint64 `wire:"2"` // entry of the control log
	Data  []byte `wire:"3"` // message of `core/catalog`
	Extra []byte `wire:"*"`
}

// Encode returns the message.
func (m *AppRecord) Encode() []byte { return encodeAppRecord(nil, m) }

// DecodeAppRecord reads an AppRecord, whose Data borrows data. Errors: ErrFormat.
func DecodeAppRecord(data []byte) (AppRecord, error) { return decodeAppRecord(data) }

// Checkpoint contains the positions of the reader and of the log. The origin sends it after the last existing entries.
//
//field:message
type Checkpoint struct {
	Opening log.Epoch `wire:"1"` // opening of the log
	To      uint64    `wire:"2"` // last entry that was sent
	Head    uint64    `wire:"3"` // last entry of the log
	Stable  uint64    `wire:"4"` // last entry that every copy of the log at the origin has
	Now     Millis    `wire:"5"` // the origin's clock
	Extra   []byte    `wire:"*"`
}

// Encode returns the message.
func (m *Checkpoint) Encode() []byte { return encodeCheckpoint(nil, m) }

// DecodeCheckpoint reads a Checkpoint. Errors: ErrFormat.
func DecodeCheckpoint(data []byte) (Checkpoint, error) { return decodeCheckpoint(data) }

// Keepalive shows that a stream without other messages is alive.
//
//field:message
type Keepalive struct {
	Now       Millis `wire:"1"` // the origin's clock
	ExpiresIn uint64 `wire:"2"` // seconds until the reader's token expires; absent: never
	Extra     []byte `wire:"*"`
}

// Encode returns the message.
func (m *Keepalive) Encode() []byte { return encodeKeepalive(nil, m) }

// DecodeKeepalive reads a Keepalive. Errors: ErrFormat.
func DecodeKeepalive(data []byte) (Keepalive, error) { return decodeKeepalive(data) }

// EndReason is the reason why a stream ends.
type EndReason uint32

// The reasons, and what the reader does next.
const (
	WhyDone     EndReason = 1 + iota // the reader has all entries, or the time of the answer is over: ask again
	WhyRebase                        // the log does not continue from the reader's cursor: begin a session
	WhyGone                          // the application was deleted
	WhyExpired                       // the token expired or was revoked
	WhyShutdown                      // the origin shuts down: retry after WaitMillis
	WhyScope                         // the reader's scope changed: begin a session
	WhyError                         // the origin failed to read its store: retry after WaitMillis
)

var whyNames = [...]string{"", "done", "rebase", "gone", "expired", "shutdown", "scope", "error"}

// String returns the reason's name, such as "rebase".
func (w EndReason) String() string {
	if w > 0 && int(w) < len(whyNames) {
		return whyNames[w]
	}
	return fmt.Sprintf("reason %d", uint32(w))
}

// End is the last message of a stream.
//
//field:message
type End struct {
	Why        EndReason `wire:"1"` // reason; see below
	Detail     string    `wire:"2"` // explanation for people
	WaitMillis uint64    `wire:"3"` // milliseconds to wait before the next request
	Extra      []byte    `wire:"*"`
}

// Encode returns the message.
func (m *End) Encode() []byte { return encodeEnd(nil, m) }

// DecodeEnd reads an End. Errors: ErrFormat.
func DecodeEnd(data []byte) (End, error) { return decodeEnd(data) }
