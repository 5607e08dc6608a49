package wire

import "github.com/sightline-dev/sightline/core/log"

// Push offers operations of one writer, in ascending sequence without gaps.
//
//field:message
type Push struct {
	App     string       `wire:"1"`             // id of the application
	Opening log.Epoch    `wire:"3"`             // opening of the log in the session
	Writer  log.Writer   `wire:"5"`             // writer that made the operations
	Secret  []byte       `wire:"6"`             // secret of the writer. A site of version 0.1.0 has that of its lease; that of an edge has none
	Rows    []byte       `wire:"7"`             // the operations; see *Rows*
	Before  log.HLC      `wire:"8,fixed"`       // clock that the writer gave the operation before the first one; absent: the replica has dropped it
	Gap     bool         `wire:"9"`             // the replica lacks the operations between the log's last one and the first one
	For     []Delegation `wire:"10,max=MaxOps"` // callers for which an edge made some of them; the rest are the replica's own
	Tokens  []Tokens     `wire:"11,max=MaxOps"` // access tokens that callers of an edge used for some of the operations
	Extra   []byte       `wire:"*"`
}

// Delegation names the caller for whom a replica made a run of operations, so that the origin can check the caller's permissions again.
type Delegation struct {
	First   uint64   `wire:"1"` // first sequence of the run
	Last    uint64   `wire:"2"` // last sequence of the run
	Subject string   `wire:"3"` // id of the key or the client
	Token   string   `wire:"4"` // id of the access token; empty if the caller used a key
	Issued  Millis   `wire:"5"` // time of the operations, by the replica's clock
	Scopes  []string `wire:"6,max=maxScopes"`
}

// Tokens names the client and the generation of the access token that requested a run of operations, so that the origin can check whether
// the token was still valid.
type Tokens struct {
	First      uint64 `wire:"1"` // first sequence of the run
	Last       uint64 `wire:"2"` // last sequence of the run
	Client     string `wire:"3"`
	Generation uint64 `wire:"4"`
}

// Encode returns the message.
func (m *Push) Encode() []byte { return encodePush(nil, m) }

// DecodePush reads a Push, whose Rows borrow data. Errors: ErrFormat.
func DecodePush(data []byte) (Push, error) { return decodePush(data) }

// Pushed is the answer to a Push. The origin accepts the operations up to Accepted and none after it.
//
//field:message
//field:reserved 3
type Pushed struct {
	Opening    log.Epoch `wire:"1"`            // opening of the log
	Accepted   uint64    `wire:"2"`            // the log durably stores the operations of the push up to this sequence
	Verdicts   []Verdict `wire:"4,max=MaxOps"` // verdicts on operations without their usual effect, as a preview: the folded log decides
	Head       uint64    `wire:"5"`            // last entry of the log
	Stable     uint64    `wire:"6"`            // last entry that every copy of the log at the origin has
	WaitMillis uint64    `wire:"7"`            // milliseconds to wait before the next push
	Extra      []byte    `wire:"*"`
}

// Verdict is the result of one operation.
type Verdict struct {
	Seq    uint64  `wire:"1"` // sequence of the operation
	Code   uint32  `wire:"2"` // fold.Code
	Detail string  `wire:"3"`
	Dot    log.Dot `wire:"4"` // object that the operation conflicts with, or that it created
	ID     string  `wire:"5"` // id of the object that the operation created
}

// Encode returns the message.
func (m *Pushed) Encode() []byte { return encodePushed(nil, m) }

// DecodePushed reads a Pushed. Errors: ErrFormat.
func DecodePushed(data []byte) (Pushed, error) { return decodePushed(data) }
