package wire

import (
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Push offers operations of one site, in the order of their sequence and without a gap.
type Push struct {
	App       string
	Partition uint32
	Epoch     log.Epoch
	Base      uint64 // the replica's cursor
	Site      log.Site
	Block     []byte   // of the operations, see [EncodeOps]
	For       []Behalf // for whom some of them were made; the rest are the replica's own
	Tokens    []Tokens // under which access tokens some of them were made
	Lives     []Life   // that made the operation before the first, and these; as far as they are noted
	Again     bool     // they came back with the log before it was restored from a backup; Site may be one that the replica left
	Older     uint64   // last of the operations that were made on a log of another epoch; 0: none
	Chain     log.Chain
	Seal      []byte // of the log up to Base with Chain, see [Entries]: a log that lacks it was rolled back
	Extra     []byte
}

// Behalf says for whom a replica made a run of operations, so that the origin can ask again
// whether they might.
type Behalf struct {
	First, Last uint64 // sequences
	Subject     string // id of the key or the client
	Token       string // id of the access token; empty: a key
	Issued      Millis // when they were made, by the replica's clock
	Scopes      []string
}

// Tokens says of which client and generation the access token was with which a run of operations was asked for,
// so that the origin can tell whether it was over by then.
type Tokens struct {
	First, Last uint64 // sequences
	Client      string
	Generation  uint64
}

// Encode returns the message.
func (m *Push) Encode() []byte {
	var e field.Encoder
	e.Text(1, m.App)
	e.Uint(2, uint64(m.Partition))
	e.Hash(3, m.Epoch[:])
	e.Uint(4, m.Base)
	e.Uint(5, uint64(m.Site))
	e.Raw(6, m.Block)
	for i := range m.For {
		b := &m.For[i]
		at := e.Open(7)
		e.Uint(1, b.First)
		e.Uint(2, b.Last)
		e.Text(3, b.Subject)
		e.Text(4, b.Token)
		e.Uint(5, uint64(b.Issued))
		texts(&e, 6, b.Scopes)
		e.Close(at)
	}
	for i := range m.Tokens {
		t := &m.Tokens[i]
		at := e.Open(8)
		e.Uint(1, t.First)
		e.Uint(2, t.Last)
		e.Text(3, t.Client)
		e.Uint(4, t.Generation)
		e.Close(at)
	}
	encodeLives(&e, 9, m.Lives)
	e.Bool(10, m.Again)
	e.Uint(11, m.Older)
	e.Hash(12, m.Chain[:])
	e.Raw(13, m.Seal)
	return e.Bytes(m.Extra)
}

// DecodePush reads a Push, whose Block borrows data. Errors: ErrFormat.
func DecodePush(data []byte) (m Push, err error) {
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
			m.Base = d.Uint()
		case 5:
			m.Site = log.Site(d.Uint32())
		case 6:
			m.Block = d.Raw()
		case 7:
			m.For = add(d, m.For, MaxOps, decodeBehalf(d.Message()))
		case 8:
			m.Tokens = add(d, m.Tokens, MaxOps, decodeTokens(d.Message()))
		case 9:
			m.Lives = add(d, m.Lives, MaxOps+1, decodeLife(d.Message()))
		case 10:
			m.Again = d.Bool()
		case 11:
			m.Older = d.Uint()
		case 12:
			d.Hash(m.Chain[:])
		case 13:
			m.Seal = d.Raw()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func decodeBehalf(d *field.Decoder) (b Behalf) {
	for d.Next() {
		switch d.Number {
		case 1:
			b.First = d.Uint()
		case 2:
			b.Last = d.Uint()
		case 3:
			b.Subject = d.Text()
		case 4:
			b.Token = d.Text()
		case 5:
			b.Issued = Millis(d.Uint())
		case 6:
			b.Scopes = add(d, b.Scopes, maxScopes, d.Text())
		}
	}
	return b
}

func decodeTokens(d *field.Decoder) (t Tokens) {
	for d.Next() {
		switch d.Number {
		case 1:
			t.First = d.Uint()
		case 2:
			t.Last = d.Uint()
		case 3:
			t.Client = d.Text()
		case 4:
			t.Generation = d.Uint()
		}
	}
	return t
}

// Pushed is the answer to a Push: what was accepted is always the beginning of it.
type Pushed struct {
	Epoch      log.Epoch
	Accepted   uint64    // last sequence of the site that the log has; what is below need not come again
	Runs       []Run     // where operations of this push are in the log, where that is known
	Verdicts   []Verdict // of those that did not just do what they say; advice, the log decides
	Head       uint64
	Stable     uint64
	WaitMillis uint64 // before the next push; 0: none
	Extra      []byte
}

// Run says that Count operations of a site, from First on, are the log's entries from Seq on.
type Run struct{ First, Seq, Count uint64 }

// Verdict is what became of one operation.
type Verdict struct {
	Seq    uint64 // the site's
	Code   uint32 // fold.Code
	Detail string
	Dot    log.Dot // of the thing that is in its way, or that it made
	ID     string  // of the thing that it made
}

// Encode returns the message.
func (m *Pushed) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Epoch[:])
	e.Uint(2, m.Accepted)
	for _, r := range m.Runs {
		at := e.Open(3)
		e.Uint(1, r.First)
		e.Uint(2, r.Seq)
		e.Uint(3, r.Count)
		e.Close(at)
	}
	for i := range m.Verdicts {
		v := &m.Verdicts[i]
		at := e.Open(4)
		e.Uint(1, v.Seq)
		e.Uint(2, uint64(v.Code))
		e.Text(3, v.Detail)
		log.EncodeDot(&e, 4, v.Dot)
		e.Text(5, v.ID)
		e.Close(at)
	}
	e.Uint(5, m.Head)
	e.Uint(6, m.Stable)
	e.Uint(7, m.WaitMillis)
	return e.Bytes(m.Extra)
}

// DecodePushed reads a Pushed. Errors: ErrFormat.
func DecodePushed(data []byte) (m Pushed, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			d.Hash(m.Epoch[:])
		case 2:
			m.Accepted = d.Uint()
		case 3:
			m.Runs = add(d, m.Runs, MaxOps, decodeRun(d.Message()))
		case 4:
			m.Verdicts = add(d, m.Verdicts, MaxOps, decodeVerdict(d.Message()))
		case 5:
			m.Head = d.Uint()
		case 6:
			m.Stable = d.Uint()
		case 7:
			m.WaitMillis = d.Uint()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func decodeRun(d *field.Decoder) (r Run) {
	for d.Next() {
		switch d.Number {
		case 1:
			r.First = d.Uint()
		case 2:
			r.Seq = d.Uint()
		case 3:
			r.Count = d.Uint()
		}
	}
	return r
}

func decodeVerdict(d *field.Decoder) (v Verdict) {
	for d.Next() {
		switch d.Number {
		case 1:
			v.Seq = d.Uint()
		case 2:
			v.Code = d.Uint32()
		case 3:
			v.Detail = d.Text()
		case 4:
			v.Dot = log.DecodeDot(d.Message())
		case 5:
			v.ID = d.Text()
		}
	}
	return v
}
