package wire

import (
	"time"

	"github.com/sightline-dev/sightline/core/log"
)

// ContentType is the media type of messages and of streams of frames.
const ContentType = "application/vnd.sightline.sync"

// Millis is a wall time in milliseconds since 1970; 0 is none.
type Millis uint64

// MillisOf converts t to milliseconds. A time before 1970 becomes 0.
func MillisOf(t time.Time) Millis { return Millis(max(t.UnixMilli(), 0)) }

// Time returns the time in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Vectors selects whether a replica receives the records that were derived from pictures.
type Vectors uint32

// The ways to transfer derived records.
const (
	VectorsNone Vectors = iota // never: the replica computes the records itself or works without them
	VectorsQ16                 // complete records, before the entries that need them
)

// Blobs selects the pictures that a replica fetches.
type Blobs uint32

// The ways to transfer pictures. The replica asks for the pictures that it wants.
const (
	BlobsLazy Blobs = 0 // a picture when a caller asks for it
	BlobsFull Blobs = 3 // all of them at once
)

// Wants selects the parts of an application that a replica gets.
type Wants struct {
	Vectors Vectors `wire:"1"` // 0 none, 1 q16: derived records come with entries and snapshots
	Blobs   Blobs   `wire:"2"` // 0 lazily, 3 all at once
}

// Session is a replica's greeting, the body of POST /v2/sync/session. Fields 7, 8, 14 and 15 were the site of the replica, field 12 the
// pictures that it wants, and field 13 the hash of a core module.
//
//field:message
//field:reserved 7 8 12 13 14 15
type Session struct {
	Min      uint32   `wire:"1"`                 // oldest version of the protocol that the replica speaks
	Max      uint32   `wire:"2"`                 // newest version
	Fold     uint32   `wire:"3"`                 // newest fold rules that the replica knows
	Schema   uint32   `wire:"4"`                 // newest record version that the replica reads: the byte before a message's fields, now 1
	Require  []string `wire:"5,max=maxFeatures"` // features that the replica cannot do without
	Features []string `wire:"6,max=maxFeatures"` // features that the replica knows

	Name    string     `wire:"9"`                   // name of the replica, for people
	Apps    []Position `wire:"10,max=MaxPositions"` // one position for each application that the replica wants
	Vectors Vectors    `wire:"11"`                  // 0 none, 1 q16: derived records come with entries and snapshots
	Extra   []byte     `wire:"*"`                   // unknown fields
}

// Position is a replica's place in the log of one application. Field 2 was the number of a partition, field 9 a lease of calls, and fields 7
// and 11 counted operations of a site.
//
//field:reserved 2 7 9 11
type Position struct {
	App      string     `wire:"1"`              // id of the application
	Epoch    log.Epoch  `wire:"3"`              // epoch of the entry; absent: the replica has no state yet
	Seq      uint64     `wire:"4"`              // log entry of the cursor
	Chain    log.Chain  `wire:"5"`              // chain at that entry
	Register uint64     `wire:"6"`              // entry of the control log at which the replica's app record was made
	Kept     []log.Mark `wire:"8,max=MaxMarks"` // last kept entry of each epoch, the newest epoch first; see *Give back*
	Calls    uint64     `wire:"10"`             // all calls of the application that the edge answered so far; see *Calls*
	Extra    []byte     `wire:"*"`
}

// Encode returns the message.
func (m *Session) Encode() []byte { return encodeSession(nil, m) }

// DecodeSession reads a Session. Errors: ErrFormat.
func DecodeSession(data []byte) (Session, error) { return decodeSession(data) }

// Do is the next step of a replica with one application.
type Do uint32

// The next steps of a replica.
const (
	DoTail    Do = 1 + iota // continue to pull at its cursor
	DoRebase                // take the snapshot, then pull the entries after it
	DoErase                 // the application was deleted: delete all of its data
	DoRefused               // the application is outside the replica's scope: delete all but its own operations, see Grant.Drain
	DoPause                 // the log is folded by newer rules: serve the present state, and wait for a newer version of the program
)

// SessionReply is the origin's answer to a Session. Fields 5 to 7 were a leased site.
//
//field:message
//field:reserved 5 6 7
type SessionReply struct {
	Protocol uint32   `wire:"1"`                 // protocol version that both sides use
	Fold     uint32   `wire:"2"`                 // newest fold rules that the origin uses
	Now      Millis   `wire:"3"`                 // time of the origin's clock. All times are milliseconds since 1970
	Features []string `wire:"4,max=maxFeatures"` // features in use

	Grants  []Grant `wire:"8,max=MaxPositions"` // one grant for each position, in the order of the positions
	Limits  Limits  `wire:"9,once"`             // see *Limits*
	Expires Millis  `wire:"10"`                 // time at which the presented token expires; absent: never
	Links   []Link  `wire:"11,max=maxFeatures"` // paths of other calls: `keys`, `dates`
	Extra   []byte  `wire:"*"`
}

// Grant is the origin's offer for one application. Field 2 was the number of a partition, fields 11 to 13 a lease of calls, fields 9 and 15
// were about the operations of a site, field 10 was the name of a snapshot, and fields 17 to 19 were about the backup that the log was restored
// from.
//
//field:reserved 2 9 10 11 12 13 15 17 18 19
type Grant struct {
	App string `wire:"1"` // id of the application
	// 1 **tail**: continue to pull. 2 **rebase**: take a snapshot, then pull. 3 **erase**: the application was deleted. Delete all of it.
	// 4 **refused**: the application is outside the scope. Delete all but own operations. 5 **pause**: the log is folded by newer rules.
	// Serve the present state until the replica's program is updated
	Do      Do        `wire:"3"`
	Detail  string    `wire:"4"`       // reason for 4, for people
	Opening log.Epoch `wire:"5"`       // epoch with which the origin appends now
	Head    uint64    `wire:"6"`       // last entry of the log
	Stable  uint64    `wire:"7"`       // last stable entry
	Horizon log.HLC   `wire:"8,fixed"` // clock; the origin refuses older writes of fields
	Over    Millis    `wire:"14"`      // time until which the account has no calls left; absent: it has calls left. See *Calls*
	Drain   bool      `wire:"16"`      // with 4: the origin still accepts the replica's operations; see *Local only*

	Lacks     bool      `wire:"20"` // the log lacks the replica's place; see *Give back*
	Have      uint64    `wire:"21"` // greatest entry that the log has of an epoch in `kept`, at or before the kept one; 0: none
	HaveChain log.Chain `wire:"22"` // chain at that entry; absent: the origin no longer knows it
	Extra     []byte    `wire:"*"`
}

// Limits are the origin's limits of requests and answers. 0: unspecified.
type Limits struct {
	PushOps     uint64 `wire:"1"`  // operations in one push
	PushBytes   uint64 `wire:"2"`  // bytes of a push's body, before compression
	OpsRate     uint64 `wire:"3"`  // operations per second
	FrameRate   uint64 `wire:"4"`  // bytes of frames per second
	BlobBytes   uint64 `wire:"5"`  // bytes of pictures per day
	BlobSize    uint64 `wire:"6"`  // bytes of one picture
	Snapshots   uint64 `wire:"7"`  // snapshots per hour
	Streams     uint64 `wire:"8"`  // live streams at one time
	PollMillis  uint64 `wire:"9"`  // longest wait of a poll
	AliveMillis uint64 `wire:"10"` // time between keepalives
	Extra       []byte `wire:"*"`
}

// Link is the path of another call, by its name, such as "keys".
type Link struct {
	Name string `wire:"1"`
	Path string `wire:"2"`
}

// Encode returns the message.
func (m *SessionReply) Encode() []byte { return encodeSessionReply(nil, m) }

// DecodeSessionReply reads a SessionReply. Errors: ErrFormat.
func DecodeSessionReply(data []byte) (SessionReply, error) { return decodeSessionReply(data) }

// Maximum lengths of lists in messages. A message with a longer list is invalid, since decoding it would take many times the memory of
// its bytes.
const (
	MaxPositions = 4096    // applications of one session
	MaxMarks     = 16      // epochs of kept entries in a position
	MaxDates     = 512     // dates of one request
	maxFeatures  = 256     // features, and links
	maxRecords   = 1 << 13 // records of one derived message
	maxChunks    = 1 << 16 // chunks of one snapshot
	maxBegun     = 1 << 14 // partial pictures of one HaveReply
	maxScopes    = 256
)
