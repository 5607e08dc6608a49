package wire

import (
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// ContentType is the media type of messages and of streams of frames.
const ContentType = "application/vnd.sightline.sync"

// Millis is a wall time in milliseconds since 1970; 0 is none.
type Millis uint64

// MillisOf is the time's.
func MillisOf(t time.Time) Millis { return Millis(max(t.UnixMilli(), 0)) }

// Time is the time in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Vectors is how a replica wants what was derived from pictures.
type Vectors uint32

// The ways.
const (
	VectorsNone Vectors = iota // not: the replica computes it, or does without
	VectorsQ16                 // whole, before the entries that need it
)

// Blobs is how a replica wants pictures.
type Blobs uint32

// The ways. They are the replica's own: it asks for what it wants.
const (
	BlobsLazy  Blobs = iota // when one is asked for
	BlobsNone               // never
	BlobsThumb              // the 320 px picture eagerly, the picture when it is asked for
	BlobsFull               // all of them, eagerly
)

// Wants is what of an application a replica wants.
type Wants struct {
	Vectors Vectors
	Blobs   Blobs
}

// Session is a replica's greeting, the body of POST /v2/sync/session.
type Session struct {
	Min, Max uint32   // versions of the protocol that it speaks
	Fold     uint32   // newest rules that it folds by, see fold.Version
	Schema   uint32   // newest version of records that it reads, see field.Version
	Require  []string // features without which it cannot work
	Features []string // features that it knows

	Site   log.Site // its own, or 0: it asks for one
	Secret []byte   // of the site's lease
	Name   string   // for people

	Leaves     log.Site   // with Site 0: its site until now, whose operations are not its own alone; 0: it had none
	Life       uint64     // with Leaves: random name of the request for another site
	Partitions []Position // of the applications that it wants
	Wants      Wants
	Extra      []byte // field 13 among it: earlier versions put the hash of a core module there, and no field uses the number again
}

// Position is where a replica stands in one application's log.
type Position struct {
	App       string
	Partition uint32
	Epoch     log.Epoch // zero: it has nothing yet
	Seq       uint64
	Chain     log.Chain
	Register  uint64 // entry of the control log that its register is of
	Issued    uint64 // last sequence of its own operations here
	Calls     uint64 // calls of the application that the replica ever answered; only an edge counts them
	Confirmed uint64 // last own operation that came back with the log
	Extra     []byte
}

// Encode returns the message.
func (m *Session) Encode() []byte {
	var e field.Encoder
	e.Uint(1, uint64(m.Min))
	e.Uint(2, uint64(m.Max))
	e.Uint(3, uint64(m.Fold))
	e.Uint(4, uint64(m.Schema))
	texts(&e, 5, m.Require)
	texts(&e, 6, m.Features)
	e.Uint(7, uint64(m.Site))
	e.Raw(8, m.Secret)
	e.Text(9, m.Name)
	for i := range m.Partitions {
		m.Partitions[i].encode(&e, 10)
	}
	e.Uint(11, uint64(m.Wants.Vectors))
	e.Uint(12, uint64(m.Wants.Blobs))
	e.Uint(14, uint64(m.Leaves))
	e.Fixed64(15, m.Life)
	return e.Bytes(m.Extra)
}

// DecodeSession reads a Session. Errors: ErrFormat.
func DecodeSession(data []byte) (m Session, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Min = d.Uint32()
		case 2:
			m.Max = d.Uint32()
		case 3:
			m.Fold = d.Uint32()
		case 4:
			m.Schema = d.Uint32()
		case 5:
			m.Require = add(d, m.Require, maxFeatures, d.Text())
		case 6:
			m.Features = add(d, m.Features, maxFeatures, d.Text())
		case 7:
			m.Site = log.Site(d.Uint32())
		case 8:
			m.Secret = d.Raw()
		case 9:
			m.Name = d.Text()
		case 10:
			m.Partitions = add(d, m.Partitions, MaxPositions, decodePosition(d.Message()))
		case 11:
			m.Wants.Vectors = Vectors(d.Uint32())
		case 12:
			m.Wants.Blobs = Blobs(d.Uint32())
		case 14:
			m.Leaves = log.Site(d.Uint32())
		case 15:
			m.Life = d.Fixed64()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func (p *Position) encode(e *field.Encoder, number int) {
	at := e.Open(number)
	e.Text(1, p.App)
	e.Uint(2, uint64(p.Partition))
	e.Hash(3, p.Epoch[:])
	e.Uint(4, p.Seq)
	e.Hash(5, p.Chain[:])
	e.Uint(6, p.Register)
	e.Uint(7, p.Issued)
	e.Uint(10, p.Calls) // 8 and 9 were a lease of calls
	e.Uint(11, p.Confirmed)
	e.Append(p.Extra)
	e.Close(at)
}

func decodePosition(d *field.Decoder) (p Position) {
	for d.Next() {
		switch d.Number {
		case 1:
			p.App = d.Text()
		case 2:
			p.Partition = d.Uint32()
		case 3:
			d.Hash(p.Epoch[:])
		case 4:
			p.Seq = d.Uint()
		case 5:
			d.Hash(p.Chain[:])
		case 6:
			p.Register = d.Uint()
		case 7:
			p.Issued = d.Uint()
		case 10:
			p.Calls = d.Uint()
		case 11:
			p.Confirmed = d.Uint()
		default:
			d.Keep()
		}
	}
	p.Extra = d.Extra()
	return p
}

// Do is what a replica is to do about one application.
type Do uint32

// What it may be.
const (
	DoTail    Do = 1 + iota // pull on from its cursor
	DoRebase                // take the snapshot, then pull on from its entry
	DoErase                 // the application was deleted: forget all of it
	DoRefused               // it is outside its scope: forget all of it but its own operations, see Grant.Drain
	DoPause                 // the log is folded by newer rules: serve what it has, and wait for a newer version
)

// Offered is the origin's answer to a Session.
type Offered struct {
	Protocol uint32   // version to be spoken
	Fold     uint32   // rules by which the logs are folded
	Now      Millis   // the origin's clock
	Features []string // of those the replica knows, the ones in use

	Site   log.Site // the replica's, leased until Until
	Secret []byte   // of a lease that begins now; empty: as before
	Until  Millis

	Grants  []Grant // one for each position asked for, in that order
	Limits  Limits
	Expires Millis // end of the token it was asked with; 0: it has none
	Links   []Link // paths of other calls, such as the one for keys
	Extra   []byte
}

// Grant is what the origin offers of one application.
type Grant struct {
	App       string
	Partition uint32
	Do        Do
	Detail    string // of DoRefused, or why the site's operations are refused; for people
	Epoch     log.Epoch
	Head      uint64 // last entry of the log
	Stable    uint64
	Horizon   log.HLC
	Confirmed uint64   // last of the site's own operations that the log has
	Snapshot  [32]byte // name of the snapshot to take, with DoRebase; zero: whichever is newest
	Over      Millis   // until then the application's account has no calls left; 0: it has
	Lives     []Life   // of the replica that made its operations from Confirmed of its position to Issued, or to Confirmed here
	Drain     bool     // with DoRefused: the origin still takes the replica's own operations

	// Restored says that the log was restored from a backup, which ended in entry Backup with chain BackupChain. The origin takes back what
	// replicas have kept of later entries. BackupChain is zero where the origin does not know it any more.
	Restored    bool
	Backup      uint64
	BackupChain log.Chain
	Extra       []byte
}

// Limits are what the origin takes and gives. 0: it does not say.
type Limits struct {
	PushOps     uint64 // operations of one push
	PushBytes   uint64 // bytes of its body, before compression
	OpsRate     uint64 // operations a second
	FrameRate   uint64 // bytes of frames a second
	BlobBytes   uint64 // bytes of pictures a day
	BlobSize    uint64 // bytes of one picture
	Snapshots   uint64 // snapshots an hour
	Streams     uint64 // live streams at one time
	PollMillis  uint64 // longest wait of a poll
	AliveMillis uint64 // time between keepalives
	Extra       []byte
}

// Link is the path of another call, by its name, such as "keys".
type Link struct{ Name, Path string }

// Encode returns the message.
func (m *Offered) Encode() []byte {
	var e field.Encoder
	e.Uint(1, uint64(m.Protocol))
	e.Uint(2, uint64(m.Fold))
	e.Uint(3, uint64(m.Now))
	texts(&e, 4, m.Features)
	e.Uint(5, uint64(m.Site))
	e.Raw(6, m.Secret)
	e.Uint(7, uint64(m.Until))
	for i := range m.Grants {
		m.Grants[i].encode(&e, 8)
	}
	m.Limits.encode(&e, 9)
	e.Uint(10, uint64(m.Expires))
	for _, l := range m.Links {
		at := e.Open(11)
		e.Text(1, l.Name)
		e.Text(2, l.Path)
		e.Close(at)
	}
	return e.Bytes(m.Extra)
}

// DecodeOffered reads an Offered. Errors: ErrFormat.
func DecodeOffered(data []byte) (m Offered, err error) {
	limited := false
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Protocol = d.Uint32()
		case 2:
			m.Fold = d.Uint32()
		case 3:
			m.Now = Millis(d.Uint())
		case 4:
			m.Features = add(d, m.Features, maxFeatures, d.Text())
		case 5:
			m.Site = log.Site(d.Uint32())
		case 6:
			m.Secret = d.Raw()
		case 7:
			m.Until = Millis(d.Uint())
		case 8:
			m.Grants = add(d, m.Grants, MaxPositions, decodeGrant(d.Message()))
		case 9:
			if limited {
				d.Malformed("limits twice")
			}
			m.Limits, limited = decodeLimits(d.Message()), true
		case 10:
			m.Expires = Millis(d.Uint())
		case 11:
			m.Links = add(d, m.Links, maxFeatures, decodeLink(d.Message()))
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func (g *Grant) encode(e *field.Encoder, number int) {
	at := e.Open(number)
	e.Text(1, g.App)
	e.Uint(2, uint64(g.Partition))
	e.Uint(3, uint64(g.Do))
	e.Text(4, g.Detail)
	e.Hash(5, g.Epoch[:])
	e.Uint(6, g.Head)
	e.Uint(7, g.Stable)
	e.Fixed64(8, uint64(g.Horizon))
	e.Uint(9, g.Confirmed)
	e.Hash(10, g.Snapshot[:])
	e.Uint(14, uint64(g.Over)) // 11 to 13 were a lease of calls
	encodeLives(e, 15, g.Lives)
	e.Bool(16, g.Drain)
	e.Bool(17, g.Restored)
	e.Uint(18, g.Backup)
	e.Hash(19, g.BackupChain[:])
	e.Append(g.Extra)
	e.Close(at)
}

func decodeGrant(d *field.Decoder) (g Grant) {
	for d.Next() {
		switch d.Number {
		case 1:
			g.App = d.Text()
		case 2:
			g.Partition = d.Uint32()
		case 3:
			g.Do = Do(d.Uint32())
		case 4:
			g.Detail = d.Text()
		case 5:
			d.Hash(g.Epoch[:])
		case 6:
			g.Head = d.Uint()
		case 7:
			g.Stable = d.Uint()
		case 8:
			g.Horizon = log.HLC(d.Fixed64())
		case 9:
			g.Confirmed = d.Uint()
		case 10:
			d.Hash(g.Snapshot[:])
		case 14:
			g.Over = Millis(d.Uint())
		case 15:
			g.Lives = add(d, g.Lives, maxLives, decodeLife(d.Message()))
		case 16:
			g.Drain = d.Bool()
		case 17:
			g.Restored = d.Bool()
		case 18:
			g.Backup = d.Uint()
		case 19:
			d.Hash(g.BackupChain[:])
		default:
			d.Keep()
		}
	}
	g.Extra = d.Extra()
	return g
}

// Life names the life of a replica's store that made the operations of a site from First to the next Life's.
type Life struct{ First, ID uint64 }

func encodeLives(e *field.Encoder, number int, lives []Life) {
	for _, l := range lives {
		at := e.Open(number)
		e.Uint(1, l.First)
		e.Fixed64(2, l.ID)
		e.Close(at)
	}
}

func decodeLife(d *field.Decoder) (l Life) {
	for d.Next() {
		switch d.Number {
		case 1:
			l.First = d.Uint()
		case 2:
			l.ID = d.Fixed64()
		}
	}
	return l
}

// fields are the limits in the order of their numbers, which begin at 1.
func (l *Limits) fields() [10]*uint64 {
	return [...]*uint64{
		&l.PushOps, &l.PushBytes, &l.OpsRate, &l.FrameRate, &l.BlobBytes, &l.BlobSize,
		&l.Snapshots, &l.Streams, &l.PollMillis, &l.AliveMillis,
	}
}

func (l *Limits) encode(e *field.Encoder, number int) {
	said := len(l.Extra) > 0
	for _, v := range l.fields() {
		said = said || *v != 0
	}
	if !said {
		return
	}
	at := e.Open(number)
	for i, v := range l.fields() {
		e.Uint(1+i, *v)
	}
	e.Append(l.Extra)
	e.Close(at)
}

func decodeLimits(d *field.Decoder) (l Limits) {
	fields := l.fields()
	for d.Next() {
		if d.Number > len(fields) {
			d.Keep()
			continue
		}
		*fields[d.Number-1] = d.Uint()
	}
	l.Extra = d.Extra()
	return l
}

func decodeLink(d *field.Decoder) (l Link) {
	for d.Next() {
		switch d.Number {
		case 1:
			l.Name = d.Text()
		case 2:
			l.Path = d.Text()
		}
	}
	return l
}

// Lengths of lists in messages. What is longer is no message: it would take many times the
// memory that it took on its way.
const (
	MaxPositions = 4096    // applications of one session
	maxFeatures  = 256     // and links
	maxRecords   = 1 << 13 // of one derived message
	maxChunks    = 1 << 16 // of one snapshot
	maxLeaves    = 1 << 15 // of one node
	maxBegun     = 1 << 14
	maxScopes    = 256
	maxLives     = 1 << 14 // more than the operations of an outbox
)

// add appends to a list that has at most so many.
func add[T any](d *field.Decoder, list []T, most int, v T) []T {
	if len(list) >= most {
		d.Malformed("list too long")
		return list
	}
	return append(list, v)
}

func texts(e *field.Encoder, number int, list []string) {
	for _, s := range list {
		e.Element(number, s)
	}
}
