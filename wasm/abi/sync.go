package abi

import (
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/replica"
)

// kinds of events and effects.
const (
	eventStatus = iota // nothing happened: only the status is wanted
	eventBegin
	eventWake
	eventLocal
	eventAnswer
	eventNeed
	eventOffline
	eventOnline
	eventStop
)

const (
	effectAsk = 1 + iota
	effectCancel
	effectWakeAt
	effectGot
	effectChanged
	effectPurge
	effectTake
)

// AppendEvent writes an event of a replica's machine; nil asks for its status alone. The body of an
// answer comes last, and is copied once.
func AppendEvent(buf []byte, e replica.Event) []byte {
	x := encoder(buf)
	switch e := e.(type) {
	case nil:
	case replica.Begin:
		x.Uint(1, eventBegin)
	case replica.Wake:
		x.Uint(1, eventWake)
	case replica.Local:
		x.Uint(1, eventLocal)
	case replica.Answer:
		x.Uint(1, eventAnswer)
		x.Uint(2, e.ID)
		x.Uint(3, uint64(max(e.Status, 0)))
		putHeaders(x, 4, e.Header)
		x.Bool(5, e.More)
		if e.Err != nil {
			x.Element(6, e.Err.Error())
		}
		x.Hash(7, e.Sum[:])
		x.Bool(8, e.Placed)
		x.Raw(15, e.Body)
	case replica.Need:
		x.Uint(1, eventNeed)
		x.Hash(7, e.Blob[:])
	case replica.Offline:
		x.Uint(1, eventOffline)
	case replica.Online:
		x.Uint(1, eventOnline)
	case replica.Stop:
		x.Uint(1, eventStop)
	default:
		panic(fmt.Sprintf("abi: event %T", e))
	}
	return x.Bytes(nil)
}

// ParseEvent reads an envelope; nil wants the status alone. The body of an answer is borrowed. Errors:
// field.ErrFormat, for an event that is none too.
func ParseEvent(data []byte) (replica.Event, error) {
	var kind uint64
	var a replica.Answer
	var need replica.Need
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			kind = d.Uint()
		case 2:
			a.ID = d.Uint()
		case 3:
			a.Status = d.Int()
		case 4:
			a.Header = append(a.Header, getHeader(d))
		case 5:
			a.More = d.Bool()
		case 6:
			a.Err = errors.New(d.Text())
		case 7:
			d.Hash(a.Sum[:])
			need.Blob = a.Sum
		case 8:
			a.Placed = d.Bool()
		case 15:
			a.Body = d.Raw()
		}
	}
	if err := envelope("event", d); err != nil {
		return nil, err
	}
	switch kind {
	case eventStatus:
		return nil, nil
	case eventBegin:
		return replica.Begin{}, nil
	case eventWake:
		return replica.Wake{}, nil
	case eventLocal:
		return replica.Local{}, nil
	case eventAnswer:
		return a, nil
	case eventNeed:
		return need, nil
	case eventOffline:
		return replica.Offline{}, nil
	case eventOnline:
		return replica.Online{}, nil
	case eventStop:
		return replica.Stop{}, nil
	}
	return nil, fmt.Errorf("event %d: %w", kind, field.ErrFormat)
}

// Synced is what an event came to.
type Synced struct {
	Err     error // of the store: the machine is done for
	Effects []replica.Effect
	Status  replica.Status
}

// Append writes the envelope into buf's memory.
func (s *Synced) Append(buf []byte) []byte {
	x := encoder(buf)
	if s.Err != nil {
		putError(x, 1, s.Err)
	}
	at := x.Open(2)
	putStatus(x, &s.Status)
	x.Close(at)
	for _, e := range s.Effects {
		at := x.Open(3)
		putEffect(x, e)
		x.Close(at)
	}
	return x.Bytes(nil)
}

// ParseSynced reads an envelope. Bodies are borrowed.
func ParseSynced(data []byte) (Synced, error) {
	var s Synced
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			s.Err = getError(d)
		case 2:
			s.Status = getStatus(d.Message())
		case 3:
			e, err := getEffect(d.Message())
			if err != nil {
				return Synced{}, err
			}
			s.Effects = append(s.Effects, e)
		}
	}
	return s, envelope("effects", d)
}

func putEffect(x *field.Encoder, e replica.Effect) {
	switch e := e.(type) {
	case replica.Ask:
		x.Uint(1, effectAsk)
		x.Uint(2, e.ID)
		x.Text(3, e.Method)
		x.Text(4, e.Path)
		x.Text(5, e.Query)
		putHeaders(x, 6, e.Header)
		x.Bool(7, e.Stream)
		x.Bool(13, e.Place)
		x.Raw(15, e.Body)
	case replica.Cancel:
		x.Uint(1, effectCancel)
		x.Uint(2, e.ID)
	case replica.WakeAt:
		x.Uint(1, effectWakeAt)
		putTime(x, 8, e.At)
	case replica.Got:
		x.Uint(1, effectGot)
		x.Hash(9, e.Blob[:])
		if e.Err != nil {
			putError(x, 10, e.Err)
		}
	case replica.Changed:
		x.Uint(1, effectChanged)
	case replica.Purge:
		x.Uint(1, effectPurge)
		x.Text(11, e.Why)
		x.Bool(12, e.KeepOutbox)
	case replica.Take:
		x.Uint(1, effectTake)
		x.Raw(15, e.Manifest)
	default:
		panic(fmt.Sprintf("abi: effect %T", e))
	}
}

func getEffect(d *field.Decoder) (replica.Effect, error) {
	var kind uint64
	var ask replica.Ask
	var wake replica.WakeAt
	var got replica.Got
	var purge replica.Purge
	for d.Next() {
		switch d.Number {
		case 1:
			kind = d.Uint()
		case 2:
			ask.ID = d.Uint()
		case 3:
			ask.Method = d.Text()
		case 4:
			ask.Path = d.Text()
		case 5:
			ask.Query = d.Text()
		case 6:
			ask.Header = append(ask.Header, getHeader(d))
		case 7:
			ask.Stream = d.Bool()
		case 8:
			wake.At = getTime(d)
		case 9:
			d.Hash(got.Blob[:])
		case 10:
			got.Err = getError(d)
		case 11:
			purge.Why = d.Text()
		case 12:
			purge.KeepOutbox = d.Bool()
		case 13:
			ask.Place = d.Bool()
		case 15:
			ask.Body = d.Raw()
		}
	}
	if err := envelope("effect", d); err != nil {
		return nil, err
	}
	switch kind {
	case effectAsk:
		return ask, nil
	case effectCancel:
		return replica.Cancel{ID: ask.ID}, nil
	case effectWakeAt:
		return wake, nil
	case effectGot:
		return got, nil
	case effectChanged:
		return replica.Changed{}, nil
	case effectPurge:
		return purge, nil
	case effectTake:
		return replica.Take{Manifest: ask.Body}, nil
	}
	return nil, fmt.Errorf("effect %d: %w", kind, field.ErrFormat)
}

// counters are a status's numbers in the order of their fields, from 4 on.
func counters(s *replica.Status) []*uint64 {
	return []*uint64{
		&s.Cursor, &s.Head, &s.Issued, &s.Accepted, &s.Folded,
		&s.BlobsSent, &s.BlobsGot, &s.Rebases, &s.Repairs, &s.Refused,
	}
}

// sizes are likewise its small ones, from 16 on, and moments its times, from 24 on.
func sizes(s *replica.Status) []*int {
	return []*int{&s.Pieces, &s.PiecesDone, &s.Uploads, &s.Downloads}
}

func moments(s *replica.Status) []*time.Time {
	return []*time.Time{&s.Contact, &s.AsOf, &s.Audited, &s.Retry, &s.Heard}
}

func putStatus(x *field.Encoder, s *replica.Status) {
	x.Uint(1, uint64(s.Phase))
	x.Uint(2, uint64(s.Site))
	x.Hash(3, s.Epoch[:])
	for i, n := range counters(s) {
		x.Uint(4+i, *n)
	}
	for i, n := range sizes(s) {
		x.Uint(16+i, uint64(max(*n, 0)))
	}
	for i, t := range moments(s) {
		putTime(x, 24+i, *t)
	}
	x.Text(32, s.Problem)
	x.Text(33, s.Denied)
	x.Text(34, s.Renewed)
}

func getStatus(d *field.Decoder) replica.Status {
	var s replica.Status
	counts, few, times := counters(&s), sizes(&s), moments(&s)
	for d.Next() {
		switch n := d.Number; {
		case n == 1:
			if s.Phase = replica.Phase(d.Int()); s.Phase > replica.Purged {
				d.Malformed("phase")
			}
		case n == 2:
			s.Site = log.Site(d.Uint32())
		case n == 3:
			d.Hash(s.Epoch[:])
		case n >= 4 && n < 4+len(counts):
			*counts[n-4] = d.Uint()
		case n >= 16 && n < 16+len(few):
			*few[n-16] = d.Int()
		case n >= 24 && n < 24+len(times):
			*times[n-24] = getTime(d)
		case n == 32:
			s.Problem = d.Text()
		case n == 33:
			s.Denied = d.Text()
		case n == 34:
			s.Renewed = d.Text()
		}
	}
	return s
}

// A time is nanoseconds since 1970; without the field it is the zero time.
func putTime(x *field.Encoder, number int, t time.Time) {
	if !t.IsZero() {
		x.Fixed64(number, uint64(t.UnixNano()))
	}
}

func getTime(d *field.Decoder) time.Time {
	return time.Unix(0, int64(d.Fixed64()))
}
