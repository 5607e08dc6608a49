package abi

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/replica"
)

// The kinds of events and effects.
const (
	eventStatus = iota // no event: the host only asks for the status
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

// event is an event for a replica's machine. The body of an answer comes last.
//
//field:message envelope of event
//field:pages put
type event struct {
	Kind   uint64      `wire:"1"`     // 0 status only, 1 begin, 2 wake, 3 local, 4 answer, 5 need, 6 offline, 7 online, 8 stop
	ID     uint64      `wire:"2"`     // of an answer: id of the ask
	Status int         `wire:"3"`     // of an answer: HTTP status
	Header []api.Field `wire:"4"`     // of an answer: header
	More   bool        `wire:"5"`     // another chunk of the answer follows
	Error  *string     `wire:"6,nil"` // error that ended the answer early
	// of a need: hash of the picture; of the last chunk of an answer: SHA-256 of the whole body, if the host computed it
	Blob   [32]byte `wire:"7"`
	Placed bool     `wire:"8"`  // the host has stored the requested chunk; the body is empty
	Body   []byte   `wire:"15"` // of an answer: body
}

// AppendEvent writes an event for a replica's machine. A nil event only asks for the status. AppendEvent copies the body of an answer
// once.
func AppendEvent(buf []byte, e replica.Event) []byte {
	var x event
	switch e := e.(type) {
	case nil:
	case replica.Begin:
		x.Kind = eventBegin
	case replica.Wake:
		x.Kind = eventWake
	case replica.LocalWrite:
		x.Kind = eventLocal
	case replica.Answer:
		x = event{Kind: eventAnswer, ID: e.ID, Status: e.Status, Header: e.Header, More: e.More, Blob: e.Sum, Placed: e.Placed, Body: e.Body}
		if e.Err != nil {
			text := e.Err.Error()
			x.Error = &text
		}
	case replica.BlobWanted:
		x.Kind, x.Blob = eventNeed, e.Blob
	case replica.Offline:
		x.Kind = eventOffline
	case replica.Online:
		x.Kind = eventOnline
	case replica.Stop:
		x.Kind = eventStop
	default:
		panic(fmt.Sprintf("abi: event %T", e))
	}
	return encodeEvent(buf, &x)
}

// ParseEvent reads an envelope. It returns nil if the host only asks for the status. The body of an answer borrows data. It returns
// field.ErrFormat for an invalid envelope and for an unknown event.
func ParseEvent(data []byte) (replica.Event, error) {
	x, err := decodeEvent(data)
	if err != nil {
		return nil, err
	}
	switch x.Kind {
	case eventStatus:
		return nil, nil
	case eventBegin:
		return replica.Begin{}, nil
	case eventWake:
		return replica.Wake{}, nil
	case eventLocal:
		return replica.LocalWrite{}, nil
	case eventAnswer:
		a := replica.Answer{ID: x.ID, Status: x.Status, Header: x.Header, More: x.More, Sum: x.Blob, Placed: x.Placed, Body: x.Body}
		if x.Error != nil {
			a.Err = errors.New(*x.Error)
		}
		return a, nil
	case eventNeed:
		return replica.BlobWanted{Blob: x.Blob}, nil
	case eventOffline:
		return replica.Offline{}, nil
	case eventOnline:
		return replica.Online{}, nil
	case eventStop:
		return replica.Stop{}, nil
	}
	return nil, fmt.Errorf("event %d: %w", x.Kind, field.ErrFormat)
}

// SyncResult is the result of an event.
type SyncResult struct {
	Err     error // error of the store; the machine has ended
	Effects []replica.Effect
	Status  replica.Status
}

// syncResult is the form of a SyncResult in an envelope.
//
//field:message envelope of effects
//field:pages get
type syncResult struct {
	Error   *fault         `wire:"1"` // error of the store; the machine has ended
	Status  replica.Status `wire:"2,always"`
	Effects []effect       `wire:"3"`
}

// effect is a request of the machine to its host.
type effect struct {
	Kind       uint64      `wire:"1"` // 1 ask, 2 cancel, 3 wake, 4 got, 5 changed, 6 purge, 7 take
	ID         uint64      `wire:"2"` // id of an ask, or of the ask to cancel
	Method     string      `wire:"3"` // of an ask: HTTP method. Fields up to 7 belong to an ask, too
	Path       string      `wire:"4"`
	Query      string      `wire:"5"`
	Header     []api.Field `wire:"6"`
	Stream     bool        `wire:"7"`
	At         time.Time   `wire:"8,ns"` // of a wake: time in nanoseconds since 1970
	Blob       [32]byte    `wire:"9"`    // of a got: hash of the picture
	Error      *fault      `wire:"10"`   // of a got: reason why there is no picture
	Why        string      `wire:"11"`   // of a purge: reason
	KeepOutbox bool        `wire:"12"`   // of a purge: the outbox is not deleted
	Place      bool        `wire:"13"`   // of an ask: the host may store the body itself, see `Placed`
	Body       []byte      `wire:"15"`   // of an ask: body; of a take: manifest
}

// Append writes the envelope into buf's memory.
func (s *SyncResult) Append(buf []byte) []byte {
	x := syncResult{Error: faultOf(s.Err), Status: s.Status, Effects: make([]effect, len(s.Effects))}
	for i, e := range s.Effects {
		x.Effects[i] = effectOf(e)
	}
	return encodeSyncResult(buf, &x)
}

// ParseSyncResult reads an envelope. Bodies borrow data.
func ParseSyncResult(data []byte) (SyncResult, error) {
	x, err := decodeSyncResult(data)
	s := SyncResult{Err: x.Error.err(), Status: x.Status}
	for i := range x.Effects {
		e, failed := x.Effects[i].effect()
		if err = cmp.Or(err, failed); err != nil {
			return SyncResult{}, err
		}
		s.Effects = append(s.Effects, e)
	}
	return s, err
}

func effectOf(e replica.Effect) effect {
	switch e := e.(type) {
	case replica.Ask:
		return effect{
			Kind: effectAsk, ID: e.ID, Method: e.Method, Path: e.Path, Query: e.Query, Header: e.Header, Stream: e.Stream, Place: e.Place, Body: e.Body,
		}
	case replica.Cancel:
		return effect{Kind: effectCancel, ID: e.ID}
	case replica.WakeAt:
		return effect{Kind: effectWakeAt, At: e.At}
	case replica.BlobReady:
		return effect{Kind: effectGot, Blob: e.Blob, Error: faultOf(e.Err)}
	case replica.StatusChange:
		return effect{Kind: effectChanged}
	case replica.Purge:
		return effect{Kind: effectPurge, Why: e.Reason, KeepOutbox: e.KeepOutbox}
	case replica.InstallSnapshot:
		return effect{Kind: effectTake, Body: e.Manifest}
	}
	panic(fmt.Sprintf("abi: effect %T", e))
}

func (x *effect) effect() (replica.Effect, error) {
	switch x.Kind {
	case effectAsk:
		return replica.Ask{
			ID: x.ID, Method: x.Method, Path: x.Path, Query: x.Query, Header: x.Header, Stream: x.Stream, Place: x.Place, Body: x.Body,
		}, nil
	case effectCancel:
		return replica.Cancel{ID: x.ID}, nil
	case effectWakeAt:
		return replica.WakeAt{At: x.At}, nil
	case effectGot:
		return replica.BlobReady{Blob: x.Blob, Err: x.Error.err()}, nil
	case effectChanged:
		return replica.StatusChange{}, nil
	case effectPurge:
		return replica.Purge{Reason: x.Why, KeepOutbox: x.KeepOutbox}, nil
	case effectTake:
		return replica.InstallSnapshot{Manifest: x.Body}, nil
	}
	return nil, fmt.Errorf("effect %d: %w", x.Kind, field.ErrFormat)
}
