// Package sample has a field of each kind.
package sample

import (
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Level is a small number.
type Level uint8

// Highest is the highest level.
const Highest Level = 3

// All is a message.
//
//field:message
type All struct {
	Text    string        `wire:"1"`                    // for people
	Flag    bool          `wire:"2"`                    // a | b
	Count   uint64        `wire:"3"`                    // up to 64 bits
	Site    uint32        `wire:"4"`                    // up to 32 bits
	Level   Level         `wire:"5,max=Highest"`        // up to Highest
	Any     Level         `wire:"6"`                    // up to 8 bits
	Size    int           `wire:"7"`                    // up to 31 bits
	At      log.HLC       `wire:"8,fixed"`              // eight bytes
	Signed  int64         `wire:"9"`                    // as an unsigned one
	Share   float64       `wire:"10"`            // a double
	Hash    [32]byte      `wire:"11"`                   // absent: zero
	Bytes   []byte        `wire:"12"`                   // borrowed
	Own     []byte        `wire:"13,copy"`              // copied
	Seen    []byte        `wire:"14"`              // likewise
	Names   []string      `wire:"15,max=2*len(limits)"` // not more than so many
	Hashes  [][16]byte    `wire:"16"`            // one after another
	Blobs   [][]byte      `wire:"17"`                   // likewise
	Wait    time.Duration `wire:"18,s"`                 // in whole seconds
	Soon    time.Duration `wire:"19,ms"`                // in milliseconds
	Made    time.Time     `wire:"20,ms"`                // in milliseconds since 1970
	Heard   time.Time     `wire:"21,ns"`                // in nanoseconds since 1970
	Dot     log.Dot       `wire:"22"`            // left out when it is zero
	Place   *Place        `wire:"23"`                   // nil: absent
	Places  []Place       `wire:"24"`                   // always written
	Name    *string       `wire:"25"`            // another name
	Raw     [4]uint32     `wire:"26,func=Raw,type=bytes (16)"`
	Limits  Limits        `wire:"27,once"`
	Empty   Place         `wire:"28,always"`
	Inner   Inner         `wire:"+30"`
	Changed log.Stamp     `wire:"40,or=born"` // as All was
	Marks   []Mark        `wire:"41"`
	Extra   []byte        `wire:"*"`
}

// Place is a nested message.
//
//field:reserved 3 5
type Place struct {
	Line, Column uint64
	X            uint64 `wire:"1"`
	PublicURL    string `wire:"2"`
}

// Limits is a message that stores unknown fields.
type Limits struct {
	PushOps uint64 `wire:"1"`
	Extra   []byte `wire:"*"`
}

// Inner is nested in All, where its fields have the numbers 31 and 32.
type Inner struct {
	From uint64 `wire:"1"` // the first
	To   uint64 `wire:"2"` // the last
}

// Mark is a value with the stamp of its last write.
type Mark struct {
	log.Label `wire:"+0"`
	At        log.Stamp `wire:"3,or=born"`
}

// Reply is a message that pages read and do not write.
//
//field:fields put
//field:pages get
type Reply struct {
	ID    string    `wire:"1"` // of the reply
	Wants []Place   `wire:"2"`
	At    time.Time `wire:"3,ns"`
	Data  []byte    `wire:"4"`
	View  []byte    `wire:"5,view"`
	Flag  bool      `wire:"6"`
}

// Both is a message that pages read and write, with its nested messages.
//
//field:fields put get
//field:others Rest
//field:pages put get
type Both struct {
	Names  []string  `wire:"1"`
	Places []Place   `wire:"2"`
	Place  *Place    `wire:"3"`
	Blobs  [][]byte  `wire:"4"`
	Made   time.Time `wire:"5,ms"`
	Sealed Inner     `wire:"6,opaque"`
	Raw    [4]uint32 `wire:"7,func=Raw"`
	Error  *string   `wire:"8,nil"`
	Name   string    `wire:"9,bytes"`
	Most   uint64    `wire:"10,max=field.Version"`
}

var limits = [2]int{}

func (x *All) born() log.Stamp { return log.Stamp{At: x.At, Site: x.Site} }

func putRest(e *field.Encoder, x *Both) {}

func getRest(d *field.Decoder, x *Both) {}

func putRaw(e *field.Encoder, number int, v [4]uint32) {}

func getRaw(d *field.Decoder) (v [4]uint32) { return v }
