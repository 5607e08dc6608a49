package wire

import (
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Back offers entries of a log to its origin, which was restored from a backup. A replica has kept them as they came.
type Back struct {
	App       string
	Partition uint32
	Epoch     log.Epoch // of the log as it is now
	From      uint64
	Chain     log.Chain // of the log before, at From
	Block     []byte    // of the operations after From, see [EncodeEntries]; empty: the replica only asks for Confirmed
	Lives     []SiteLife
	Seal      []byte   // as it came with the last of the entries
	Site      log.Site // the replica's; 0: it has none
	Confirmed uint64   // last own operation that came back with the log
	Issued    uint64   // last own operation
	Present   bool     // the entries come from Epoch or a later one: if the log lacks them, they prove that the origin's disk was rolled back
	Extra     []byte
}

// SiteLife is a life of a replica that writes as a site.
type SiteLife struct {
	Site log.Site
	Life
}

// Encode returns the message.
func (m *Back) Encode() []byte {
	var e field.Encoder
	e.Text(1, m.App)
	e.Uint(2, uint64(m.Partition))
	e.Hash(3, m.Epoch[:])
	e.Uint(4, m.From)
	e.Hash(5, m.Chain[:])
	e.Raw(6, m.Block)
	encodeSiteLives(&e, 7, m.Lives)
	e.Raw(8, m.Seal)
	e.Uint(9, uint64(m.Site))
	e.Uint(10, m.Confirmed)
	e.Uint(11, m.Issued)
	e.Bool(12, m.Present)
	return e.Bytes(m.Extra)
}

// DecodeBack reads a Back, whose Block borrows data. Errors: ErrFormat.
func DecodeBack(data []byte) (m Back, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.App = d.Text()
		case 2:
			m.Partition = d.Uint32()
		case 3:
			d.Hash(m.Epoch[:])
		case 4:
			m.From = d.Uint()
		case 5:
			d.Hash(m.Chain[:])
		case 6:
			m.Block = d.Raw()
		case 7:
			m.Lives = add(d, m.Lives, 2*MaxOps, decodeSiteLife(d.Message()))
		case 8:
			m.Seal = d.Raw()
		case 9:
			m.Site = log.Site(d.Uint32())
		case 10:
			m.Confirmed = d.Uint()
		case 11:
			m.Issued = d.Uint()
		case 12:
			m.Present = d.Bool()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func encodeSiteLives(e *field.Encoder, number int, lives []SiteLife) {
	for _, l := range lives {
		at := e.Open(number)
		e.Uint(1, uint64(l.Site))
		e.Uint(2, l.First)
		e.Fixed64(3, l.ID)
		e.Close(at)
	}
}

func decodeSiteLife(d *field.Decoder) (l SiteLife) {
	for d.Next() {
		switch d.Number {
		case 1:
			l.Site = log.Site(d.Uint32())
		case 2:
			l.First = d.Uint()
		case 3:
			l.ID = d.Fixed64()
		}
	}
	return l
}

// TakenBack is the answer to a Back: the log has the entries, or the origin lists them as conflicts.
type TakenBack struct {
	Epoch     log.Epoch
	To        uint64 // last entry of the Back that this is so of
	Confirmed uint64 // last operation of the replica's site that the log has
	Lives     []Life // that made those from Confirmed of the Back to Issued, or to Confirmed here
	Extra     []byte
}

// Encode returns the message.
func (m *TakenBack) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Epoch[:])
	e.Uint(2, m.To)
	e.Uint(3, m.Confirmed)
	encodeLives(&e, 4, m.Lives)
	return e.Bytes(m.Extra)
}

// DecodeTakenBack reads a TakenBack. Errors: ErrFormat.
func DecodeTakenBack(data []byte) (m TakenBack, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			d.Hash(m.Epoch[:])
		case 2:
			m.To = d.Uint()
		case 3:
			m.Confirmed = d.Uint()
		case 4:
			m.Lives = add(d, m.Lives, maxLives, decodeLife(d.Message()))
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}
