package abi

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Settings open an instance.
//
//field:fields put get
//field:pages put
type Settings struct {
	Role Role `wire:"1,max=Both"` // 1 engine, 2 analyser, 3 both
	// 32 hex digits: the one application that this engine serves; its record and keys are written by another engine on the same store.
	// Empty: all, and their records
	App           string        `wire:"2"`
	Store         StoreKind     `wire:"3,max=StoreMemory"` // 1 the host's (imports `kv_`), 2 files (imports `file_`), 3 in memory alone
	PublicURL     string        `wire:"4"`                 // base of the URLs of hosted pictures, as the origin's option
	PublicAppID   string        `wire:"5"`                 // app_id of public models and concepts, as the origin's option
	KeepPredicted time.Duration `wire:"6,s"`               // seconds; 0: the core's default
	Bundles       []string      `wire:"7"`                 // names of the files that `bundle` reads, such as `general-v1.3/manifest.json`
	Tokens        bool          `wire:"8"`                 // `token_issue` and `token_read` work; where false, there are no tokens
	OpenDoor      bool          `wire:"9"`                 // any well-formed credential, or none, is the one application's owner: a page's own data
	Rate          uint32        `wire:"10"`                // of a key that an account made: calls a second; 0: none
	Burst         uint32        `wire:"11"`                // likewise: calls at once

	Counted       bool          `wire:"12"`    // the import `count` works; where false, calls are not counted
	MaxBytes      uint32        `wire:"13"`    // of a request's body; 0: the core's default
	MaxMembers    uint32        `wire:"14"`    // likewise
	OperatorRate  uint32        `wire:"15"`    // as rate, of a key that the operator made
	OperatorBurst uint32        `wire:"16"`    // as burst, likewise
	PictureTime   time.Duration `wire:"17,ms"` // milliseconds that one analysis may take by the clock; 0: any
	// bytes that the guest's garbage collector keeps to where it can; 0: it takes up to 16 MB more than what is in use, or twice that, and
	// with store 2 or 3, 6/5
	Memory    uint64   `wire:"18"`
	Checked   bool     `wire:"19"` // the host has verified the SHA-256 of the bundles' files; the guest does not verify it again
	MaxAnswer uint64   `wire:"21"` // bytes of an answer's body; 0: the core's default
	Replica   *Replica `wire:"20"` // the application is kept a copy of an origin's; absent: it is independent
}

// Replica has the settings of an application that is a copy.
type Replica struct {
	Name  string        `wire:"1"`                  // name of this replica, for people
	Live  replica.Live  `wire:"2,max=replica.Once"` // 0 stream, 1 poll, 2 once
	Wants wire.Wants    `wire:"+2"`
	Audit time.Duration `wire:"5,s"` // seconds between comparisons with the origin; 0: an hour

	RegisterSeq uint64 `wire:"6"` // place of register in the origin's control log
	// what the origin says of the application, as its control log has it at register_seq: an instance with store 2 or 3 takes it in
	// before it opens the application. Absent: the store has it
	Register []byte `wire:"7,copy"`

	Origin          string `wire:"8"` // the origin's address, for people
	NativeSnapshots bool   `wire:"9"` // the host takes large snapshots instead of the machine, see below
}

// Marshal returns the envelope.
func (s *Settings) Marshal() []byte {
	e := encoder(nil)
	putSettings(e, s)
	return e.Bytes(nil)
}

// ParseSettings reads an envelope. It returns field.ErrFormat, wrapped, for an invalid one, and for an unknown role or store.
func ParseSettings(data []byte) (s Settings, err error) {
	d := field.Decode(data)
	getSettings(d, &s)
	if s.Role < Engine {
		d.Malformed("role")
	}
	if s.Store < StoreLent {
		d.Malformed("store")
	}
	return s, envelope("settings", d)
}

// envelope is a decoder's error with the envelope's name.
func envelope(name string, d *field.Decoder) error {
	if err := d.Err(); err != nil {
		return fmt.Errorf("envelope of %s: %w", name, err)
	}
	return nil
}

// done is the answer of open.
//
//field:message envelope of done
//field:pages get
type done struct {
	Error *fault `wire:"1"` // absent: well
}

// AppendDone writes what open answers: err, or nil.
func AppendDone(buf []byte, err error) []byte { return encodeDone(buf, &done{faultOf(err)}) }

// ParseDone reads what open answered. told is the guest's error, err that of the envelope.
func ParseDone(data []byte) (told, err error) {
	x, err := decodeDone(data)
	return x.Error.err(), err
}

// fault is an error as it crosses; nil: there is none.
type fault struct {
	Code Code   `wire:"1"`
	Text string `wire:"2"`
}

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	code, text := CodeOf(err)
	return &fault{code, text}
}

func (f *fault) err() error {
	if f == nil {
		return nil
	}
	return f.Code.Err(f.Text)
}
