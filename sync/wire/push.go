package wire

import "github.com/sightline-dev/sightline/core/log"

// Push offers operations of one site, in the order of their sequence and without a gap.
//
//field:message
type Push struct {
	App       string       `wire:"1"`              // id of the application
	Partition uint32       `wire:"2"`              // 0: an application has one
	Epoch     log.Epoch    `wire:"3"`              // of the log that the replica knows
	Base      uint64       `wire:"4"`              // the replica's cursor
	Site      log.Site     `wire:"5"`              // site that made the operations
	Block     []byte       `wire:"6"`              // of the operations; see *Blocks*
	For       []Delegation `wire:"7,max=MaxOps"`   // callers for which the edge made some of them; the rest are the replica's own
	Tokens    []Tokens     `wire:"8,max=MaxOps"`   // access tokens with which callers asked an edge for some of them
	Lives     []Life       `wire:"9,max=MaxOps+1"` // lives that made these and the operation before the first; see *Lives*
	Again     bool         `wire:"10"`             // the log had them before its restore, maybe by a site that the replica left; see *After a restore*
	Older     uint64       `wire:"11"`             // sequence of the last one that was made on a log of another epoch; see *After a rollback*
	Chain     log.Chain    `wire:"12"`             // at `base`; see *After a rollback*
	Seal      []byte       `wire:"13"`             // seal of the log up to `base`, as it came. If the log lacks that place, it was rolled back
	Extra     []byte       `wire:"*"`
}

// Delegation says for whom a replica made a run of operations, so that the origin can ask again
// whether they might.
type Delegation struct {
	First   uint64   `wire:"1"` // sequence
	Last    uint64   `wire:"2"` // sequence
	Subject string   `wire:"3"` // id of the key or the client
	Token   string   `wire:"4"` // id of the access token; empty: a key
	Issued  Millis   `wire:"5"` // when they were made, by the replica's clock
	Scopes  []string `wire:"6,max=maxScopes"`
}

// Tokens has the client and the generation of the access token with which a run of operations was requested, so that the origin can check
// whether the token was still valid.
type Tokens struct {
	First      uint64 `wire:"1"` // sequence
	Last       uint64 `wire:"2"` // sequence
	Client     string `wire:"3"`
	Generation uint64 `wire:"4"`
}

// Encode returns the message.
func (m *Push) Encode() []byte { return encodePush(nil, m) }

// DecodePush reads a Push, whose Block borrows data. Errors: ErrFormat.
func DecodePush(data []byte) (Push, error) { return decodePush(data) }

// Pushed is the answer to a Push: what was accepted is always the beginning of it.
//
//field:message
type Pushed struct {
	Epoch      log.Epoch `wire:"1"`            // of the log
	Accepted   uint64    `wire:"2"`            // last sequence of the site that the log has, durably
	Runs       []Run     `wire:"3,max=MaxOps"` // the operations that begin at sequence `first` are the entries that begin at `seq`
	Verdicts   []Verdict `wire:"4,max=MaxOps"` // verdicts on operations without their usual effect. They are advice: the log decides
	Head       uint64    `wire:"5"`            // last entry of the log
	Stable     uint64    `wire:"6"`            // last stable entry
	WaitMillis uint64    `wire:"7"`            // milliseconds to wait before the next push
	Extra      []byte    `wire:"*"`
}

// Run maps Count operations of a site, which begin at First, to the entries of the log that begin at Seq.
type Run struct {
	First uint64 `wire:"1"`
	Seq   uint64 `wire:"2"`
	Count uint64 `wire:"3"`
}

// Verdict is the result of one operation.
type Verdict struct {
	Seq    uint64  `wire:"1"` // the site's
	Code   uint32  `wire:"2"` // fold.Code
	Detail string  `wire:"3"`
	Dot    log.Dot `wire:"4"` // of the thing that is in its way, or that it made
	ID     string  `wire:"5"` // of the thing that it made
}

// Encode returns the message.
func (m *Pushed) Encode() []byte { return encodePushed(nil, m) }

// DecodePushed reads a Pushed. Errors: ErrFormat.
func DecodePushed(data []byte) (Pushed, error) { return decodePushed(data) }
