package wire

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Entries is a run of the log: those after From, up to To. Chain is the log's digest at To.
type Entries struct {
	Epoch    log.Epoch
	From, To uint64
	Chain    log.Chain
	Block    []byte // of the operations, see [EncodeOps]
	Lives    []SiteLife
	Seal     []byte    // by which the origin knows the log up to To again, after a restore from a backup; empty: it does not
	Before   log.Chain // the log's digest at From, in the first run of entries that are asked for alone
	Extra    []byte
}

// entriesBlock is the field of the block.
const entriesBlock = 5

// Encode returns the message.
func (m *Entries) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Epoch[:])
	e.Uint(2, m.From)
	e.Uint(3, m.To)
	e.Hash(4, m.Chain[:])
	e.Raw(entriesBlock, m.Block)
	encodeSiteLives(&e, 6, m.Lives)
	e.Raw(7, m.Seal)
	e.Hash(8, m.Before[:])
	return e.Bytes(m.Extra)
}

// DecodeEntriesFrame reads an Entries, whose Block borrows data. Errors: ErrFormat.
func DecodeEntriesFrame(data []byte) (m Entries, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			d.Hash(m.Epoch[:])
		case 2:
			m.From = d.Uint()
		case 3:
			m.To = d.Uint()
		case 4:
			d.Hash(m.Chain[:])
		case entriesBlock:
			m.Block = d.Raw()
		case 6:
			m.Lives = add(d, m.Lives, 2*MaxOps, decodeSiteLife(d.Message()))
		case 7:
			m.Seal = d.Raw()
		case 8:
			d.Hash(m.Before[:])
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

// Derived is what analysing pictures gave, by one base model.
type Derived struct {
	Base    [32]byte // see predict.Set.Base
	Records []DerivedRecord
	Extra   []byte
}

// DerivedRecord is the derived record of one picture and crop.
type DerivedRecord struct {
	Blob   blob.Hash
	Crop   raster.Crop
	Record []byte // as the catalog keeps it
}

// Encode returns the message.
func (m *Derived) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Base[:])
	for i := range m.Records {
		r := &m.Records[i]
		at := e.Open(2)
		e.Hash(1, r.Blob[:])
		log.EncodeCrop(&e, 2, r.Crop)
		e.Raw(3, r.Record)
		e.Close(at)
	}
	return e.Bytes(m.Extra)
}

// DecodeDerived reads a Derived, whose records borrow data. Errors: ErrFormat.
func DecodeDerived(data []byte) (m Derived, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			d.Hash(m.Base[:])
		case 2:
			m.Records = add(d, m.Records, maxRecords, decodeDerivedRecord(d.Message()))
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func decodeDerivedRecord(d *field.Decoder) (r DerivedRecord) {
	for d.Next() {
		switch d.Number {
		case 1:
			r.Blob = log.DecodeBlob(d)
		case 2:
			r.Crop = log.DecodeCrop(d.Message())
		case 3:
			r.Record = d.Raw()
		}
	}
	return r
}

// Object is a piece of an object that is named by its hash, such as a version's manifest or
// weights. Pieces come in order, from offset 0 to Size.
type Object struct {
	Hash   blob.Hash
	Size   uint64 // of the whole
	Offset uint64
	Data   []byte
	Extra  []byte
}

// Encode returns the message.
func (m *Object) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Hash[:])
	e.Uint(2, m.Size)
	e.Uint(3, m.Offset)
	e.Raw(4, m.Data)
	return e.Bytes(m.Extra)
}

// DecodeObject reads an Object, whose Data borrows data. Errors: ErrFormat.
func DecodeObject(data []byte) (m Object, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Hash = log.DecodeBlob(d)
		case 2:
			m.Size = d.Uint()
		case 3:
			m.Offset = d.Uint()
		case 4:
			m.Data = d.Raw()
		default:
			d.Keep()
		}
	}
	if end := m.Offset + uint64(len(m.Data)); end < m.Offset || end > m.Size {
		d.Malformed("chunk beyond the end of its object")
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

// Register is what a replica needs of the control log for one application: its record, keys,
// client and edges, as of the control log's entry Seq.
type Register struct {
	App   string
	Seq   uint64
	Data  []byte // core's own, see core.Engine.Register
	Extra []byte
}

// Encode returns the message.
func (m *Register) Encode() []byte {
	var e field.Encoder
	e.Text(1, m.App)
	e.Uint(2, m.Seq)
	e.Raw(3, m.Data)
	return e.Bytes(m.Extra)
}

// DecodeRegister reads a Register, whose Data borrows data. Errors: ErrFormat.
func DecodeRegister(data []byte) (m Register, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.App = d.Text()
		case 2:
			m.Seq = d.Uint()
		case 3:
			m.Data = d.Raw()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

// Checkpoint says where a reader and the log stand. It follows the last entries that there are.
type Checkpoint struct {
	Epoch  log.Epoch
	To     uint64 // last entry that was sent
	Head   uint64 // last entry of the log
	Stable uint64 // entries up to here are on every copy of the log that the origin keeps
	Now    Millis // the origin's clock
	Extra  []byte
}

// Encode returns the message.
func (m *Checkpoint) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Epoch[:])
	e.Uint(2, m.To)
	e.Uint(3, m.Head)
	e.Uint(4, m.Stable)
	e.Uint(5, uint64(m.Now))
	return e.Bytes(m.Extra)
}

// DecodeCheckpoint reads a Checkpoint. Errors: ErrFormat.
func DecodeCheckpoint(data []byte) (m Checkpoint, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			d.Hash(m.Epoch[:])
		case 2:
			m.To = d.Uint()
		case 3:
			m.Head = d.Uint()
		case 4:
			m.Stable = d.Uint()
		case 5:
			m.Now = Millis(d.Uint())
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

// Keepalive is sent on a stream that has nothing else to say.
type Keepalive struct {
	Now       Millis // the origin's clock
	ExpiresIn uint64 // seconds that the reader's token still lives; 0: it has no end
	Extra     []byte
}

// Encode returns the message.
func (m *Keepalive) Encode() []byte {
	var e field.Encoder
	e.Uint(1, uint64(m.Now))
	e.Uint(2, m.ExpiresIn)
	return e.Bytes(m.Extra)
}

// DecodeKeepalive reads a Keepalive. Errors: ErrFormat.
func DecodeKeepalive(data []byte) (m Keepalive, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Now = Millis(d.Uint())
		case 2:
			m.ExpiresIn = d.Uint()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

// Why is why a stream ends.
type Why uint32

// The reasons.
const (
	WhyDone     Why = 1 + iota // nothing is left, or the time of a poll is over: ask again
	WhyRebase                  // the log does not lead on from the reader's cursor: begin a session
	WhyGone                    // the application was deleted
	WhyExpired                 // the token has ended, or was revoked
	WhyShutdown                // the origin stops: come back after WaitMillis
	WhyScope                   // the reader's scope has changed: begin a session
	WhyError                   // the origin could not read: come back after WaitMillis
)

var whyNames = [...]string{"", "done", "rebase", "gone", "expired", "shutdown", "scope", "error"}

// String returns the reason's name, such as "rebase".
func (w Why) String() string {
	if w > 0 && int(w) < len(whyNames) {
		return whyNames[w]
	}
	return fmt.Sprintf("reason %d", uint32(w))
}

// End is the last message of a stream.
type End struct {
	Why        Why
	Detail     string // for people
	WaitMillis uint64 // not earlier again
	Extra      []byte
}

// Encode returns the message.
func (m *End) Encode() []byte {
	var e field.Encoder
	e.Uint(1, uint64(m.Why))
	e.Text(2, m.Detail)
	e.Uint(3, m.WaitMillis)
	return e.Bytes(m.Extra)
}

// DecodeEnd reads an End. Errors: ErrFormat.
func DecodeEnd(data []byte) (m End, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Why = Why(d.Uint32())
		case 2:
			m.Detail = d.Text()
		case 3:
			m.WaitMillis = d.Uint()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}
