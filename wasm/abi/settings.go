package abi

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Settings are the settings with which the host opens an instance.
//
//field:fields put get
//field:pages put
type Settings struct {
	Role Role `wire:"1,max=Both"` // 1 engine, 2 analyser, 3 both
	// id of the one application that this engine serves, in 32 hex digits; another engine on the same store writes its record and keys.
	// Empty: the engine serves all applications and writes their records
	App           string        `wire:"2"`
	Store         StoreKind     `wire:"3,max=StoreMemory"` // 1 the host's (imports `kv_`), 2 files (imports `file_`), 3 in memory alone
	PublicURL     string        `wire:"4"`                 // base of the URLs of hosted pictures, as in the origin's option
	PublicAppID   string        `wire:"5"`                 // app_id of public models and concepts; absent: `main` for clients that name themselves, and null for others; `null`: null
	KeepPredicted time.Duration `wire:"6,s"`               // retention of predicted inputs in seconds; 0: the core's default
	Bundles       []string      `wire:"7"`                 // names of the files that `bundle` reads, such as `general-v1.3/manifest.json`
	Tokens        bool          `wire:"8"`                 // `token_issue` and `token_read` work; if false, there are no tokens
	OpenDoor      bool          `wire:"9"`                 // for a page's own data: any well-formed credential, or none, acts as the owner
	Rate          uint32        `wire:"10"`                // limit of a key that an account made: calls per second; 0: no limit
	Burst         uint32        `wire:"11"`                // likewise: calls in one burst

	Counted       bool          `wire:"12"`    // the host provides the import `count`; if false, calls are not counted
	MaxBytes      uint32        `wire:"13"`    // maximum bytes of a request's body; 0: the core's default
	MaxMembers    uint32        `wire:"14"`    // maximum number of members and elements of a request's body; 0: the core's default
	OperatorRate  uint32        `wire:"15"`    // as `rate`, for a key that the operator made
	OperatorBurst uint32        `wire:"16"`    // as `burst`, for a key that the operator made
	PictureTime   time.Duration `wire:"17,ms"` // maximum time of one analysis in milliseconds; 0: no limit
	// soft limit of the guest's garbage collector in bytes. 0: the guest takes up to 16 MB more than the bytes in use, or twice those
	// bytes; with store 2 or 3, 6/5 of them
	Memory    uint64   `wire:"18"`
	Checked   bool     `wire:"19"` // the host has verified the SHA-256 of the bundles' files; the guest does not verify it again
	MaxAnswer uint64   `wire:"21"` // maximum bytes of an answer's body; 0: the core's default
	Replica   *Replica `wire:"20"` // settings of a replica of an origin's application; absent: the application is independent
	Salvage   bool     `wire:"22"` // with store 2: cut the files where they are damaged, see question `salvage`; if false, damage is an error
}

// Replica has the settings of an application that is a replica.
type Replica struct {
	Name  string        `wire:"1"`                  // name of this replica, for people
	Live  replica.Live  `wire:"2,max=replica.Once"` // 0 stream, 1 poll, 2 once
	Wants wire.Wants    `wire:"+2"`
	Audit time.Duration `wire:"5,s"` // seconds between comparisons with the origin; 0: one hour

	RegisterSeq uint64 `wire:"6"` // position of `register` in the origin's control log
	// the app record in the origin's control log at `register_seq`. An instance with store 2 or 3 stores it before it opens the
	// application. Absent: the store has it
	Register []byte `wire:"7,copy"`

	Origin          string `wire:"8"` // URL of the origin, for people
	NativeSnapshots bool   `wire:"9"` // the host applies large snapshots instead of the machine, see below
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
	if s.Store < StoreHost {
		d.Malformed("store")
	}
	return s, envelope("settings", d)
}

// envelope returns a decoder's error with the envelope's name.
func envelope(name string, d *field.Decoder) error {
	if err := d.Err(); err != nil {
		return fmt.Errorf("envelope of %s: %w", name, err)
	}
	return nil
}

// done is the answer of the export open.
//
//field:message envelope of done
//field:pages get
type done struct {
	Error *fault `wire:"1"` // absent: the instance is open
}

// AppendDone writes the answer of open. A nil err means success.
func AppendDone(buf []byte, err error) []byte { return encodeDone(buf, &done{faultOf(err)}) }

// ParseDone reads the answer of open. guestErr is the guest's error, and err is an error of the envelope.
func ParseDone(data []byte) (guestErr, err error) {
	x, err := decodeDone(data)
	return x.Error.err(), err
}

// fault is an error in an envelope; nil: no error.
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
