package abi

import (
	"bytes"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Settings open an instance.
type Settings struct {
	Role          Role
	App           string // 32 hex digits: the one application; empty: all
	Store         StoreKind
	PublicURL     string
	PublicAppID   string
	KeepPredicted time.Duration // whole seconds; 0: the core's default
	Bundles       []string      // names of the files that the import bundle reads
	Tokens        bool          // token_issue and token_read work
	OpenDoor      bool          // whoever asks is the one application's owner
	Rate, Burst   uint32        // of a key of an account's, calls a second and at once; 0: none

	Counted                     bool          // the import count works
	MaxBytes, MaxMembers        uint32        // of a request's body; 0: the core's default
	OperatorRate, OperatorBurst uint32        // as Rate and Burst, of a key of the operator's
	PictureTime                 time.Duration // of one analysis by the clock, whole milliseconds; 0: any
	Memory                      uint64        // bytes: the collector works harder near it; 0: as it is
	Checked                     bool          // the host has held the bundles' files to their hashes
	MaxAnswer                   uint64        // bytes of an answer's body; 0: the core's default
	Replica                     *Replica      // the application is a copy of an origin's; nil: it stands alone
}

// Replica says how the application of an instance is kept a copy.
type Replica struct {
	Name  string // of this copy, for people
	Live  replica.Live
	Wants wire.Wants
	Audit time.Duration // whole seconds, as replica.Options has it; 0: its default

	// Register is what the origin says of the application, as its control log has it at RegisterSeq: an
	// instance with a store of its own takes it in before it opens the application. Empty: the store has it.
	RegisterSeq uint64
	Register    []byte

	Origin string // the origin's address, for people
	Takes  bool   // the host takes large snapshots, as replica.Options has it
}

// Marshal returns the envelope.
func (s *Settings) Marshal() []byte {
	e := encoder(nil)
	e.Uint(1, uint64(s.Role))
	e.Text(2, s.App)
	e.Uint(3, uint64(s.Store))
	e.Text(4, s.PublicURL)
	e.Text(5, s.PublicAppID)
	e.Uint(6, uint64(s.KeepPredicted/time.Second))
	for _, name := range s.Bundles {
		e.Element(7, name)
	}
	e.Bool(8, s.Tokens)
	e.Bool(9, s.OpenDoor)
	e.Uint(10, uint64(s.Rate))
	e.Uint(11, uint64(s.Burst))
	e.Bool(12, s.Counted)
	e.Uint(13, uint64(s.MaxBytes))
	e.Uint(14, uint64(s.MaxMembers))
	e.Uint(15, uint64(s.OperatorRate))
	e.Uint(16, uint64(s.OperatorBurst))
	e.Uint(17, uint64(s.PictureTime/time.Millisecond))
	e.Uint(18, s.Memory)
	e.Bool(19, s.Checked)
	if r := s.Replica; r != nil {
		at := e.Open(20)
		e.Text(1, r.Name)
		e.Uint(2, uint64(r.Live))
		e.Uint(3, uint64(r.Wants.Vectors))
		e.Uint(4, uint64(r.Wants.Blobs))
		e.Uint(5, uint64(r.Audit/time.Second))
		e.Uint(6, r.RegisterSeq)
		e.Raw(7, r.Register)
		e.Text(8, r.Origin)
		e.Bool(9, r.Takes)
		e.Close(at)
	}
	e.Uint(21, s.MaxAnswer)
	return e.Bytes(nil)
}

// ParseSettings reads an envelope. It returns field.ErrFormat, wrapped, for one that is none, or
// of a role or a store that is none.
func ParseSettings(data []byte) (Settings, error) {
	var s Settings
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			s.Role = Role(d.Uint32())
		case 2:
			s.App = d.Text()
		case 3:
			s.Store = StoreKind(d.Uint32())
		case 4:
			s.PublicURL = d.Text()
		case 5:
			s.PublicAppID = d.Text()
		case 6:
			s.KeepPredicted = time.Duration(d.Uint32()) * time.Second
		case 7:
			s.Bundles = append(s.Bundles, d.Text())
		case 8:
			s.Tokens = d.Bool()
		case 9:
			s.OpenDoor = d.Bool()
		case 10:
			s.Rate = d.Uint32()
		case 11:
			s.Burst = d.Uint32()
		case 12:
			s.Counted = d.Bool()
		case 13:
			s.MaxBytes = d.Uint32()
		case 14:
			s.MaxMembers = d.Uint32()
		case 15:
			s.OperatorRate = d.Uint32()
		case 16:
			s.OperatorBurst = d.Uint32()
		case 17:
			s.PictureTime = time.Duration(d.Uint32()) * time.Millisecond
		case 18:
			s.Memory = d.Uint()
		case 19:
			s.Checked = d.Bool()
		case 20:
			s.Replica = getReplica(d.Message())
		case 21:
			s.MaxAnswer = d.Uint()
		}
	}
	if s.Role < Engine || s.Role > Both {
		d.Malformed("role")
	}
	if s.Store < StoreLent || s.Store > StoreMemory {
		d.Malformed("store")
	}
	return s, envelope("settings", d)
}

func getReplica(d *field.Decoder) *Replica {
	var r Replica
	for d.Next() {
		switch d.Number {
		case 1:
			r.Name = d.Text()
		case 2:
			if r.Live = replica.Live(d.Int()); r.Live > replica.Once {
				d.Malformed("live mode of a replica")
			}
		case 3:
			r.Wants.Vectors = wire.Vectors(d.Uint32())
		case 4:
			r.Wants.Blobs = wire.Blobs(d.Uint32())
		case 5:
			r.Audit = time.Duration(d.Uint32()) * time.Second
		case 6:
			r.RegisterSeq = d.Uint()
		case 7:
			r.Register = bytes.Clone(d.Raw())
		case 8:
			r.Origin = d.Text()
		case 9:
			r.Takes = d.Bool()
		}
	}
	return &r
}

// envelope is a decoder's error with the envelope's name.
func envelope(name string, d *field.Decoder) error {
	if err := d.Err(); err != nil {
		return fmt.Errorf("envelope of %s: %w", name, err)
	}
	return nil
}

// AppendDone writes what open answers: err, or nil.
func AppendDone(buf []byte, err error) []byte {
	e := encoder(buf)
	putError(e, 1, err)
	return e.Bytes(nil)
}

// ParseDone reads what open answered. told is the guest's error, err that of the envelope.
func ParseDone(data []byte) (told, err error) {
	d := field.Decode(data)
	for d.Next() {
		if d.Number == 1 {
			told = getError(d)
		}
	}
	return told, envelope("done", d)
}

// putError writes {1 code, 2 text}, unless err is nil.
func putError(e *field.Encoder, number int, err error) {
	if err == nil {
		return
	}
	code, text := CodeOf(err)
	at := e.Open(number)
	e.Uint(1, uint64(code))
	e.Text(2, text)
	e.Close(at)
}

func getError(d *field.Decoder) error {
	var code Code
	var text string
	m := d.Message()
	for m.Next() {
		switch m.Number {
		case 1:
			code = Code(m.Uint32())
		case 2:
			text = m.Text()
		}
	}
	return code.Err(text)
}
