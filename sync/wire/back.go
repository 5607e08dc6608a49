package wire

import "github.com/sightline-dev/sightline/core/log"

// Back offers entries to an origin whose log lacks the replica's place. The replica kept them when it pulled them.
//
//field:message
type Back struct {
	App     string    `wire:"1"`               // id of the application
	Opening log.Epoch `wire:"3"`               // opening of the log in the session
	Frames  [][]byte  `wire:"4,max=MaxFrames"` // messages Entries as they came, in their order
	Extra   []byte    `wire:"*"`
}

// MaxFrames is the maximum number of messages in a Back.
const MaxFrames = 512

// Encode returns the message.
func (m *Back) Encode() []byte { return encodeBack(nil, m) }

// DecodeBack reads a Back, whose Frames borrow data. Errors: ErrFormat.
func DecodeBack(data []byte) (Back, error) { return decodeBack(data) }

// TakenBack is the answer to a Back. The log has the operations of all its entries, durably, or the origin lists them as conflicts.
//
//field:message
type TakenBack struct {
	Opening log.Epoch `wire:"1"` // opening of the log
	To      uint64    `wire:"2"` // last entry of the last message
	Extra   []byte    `wire:"*"`
}

// Encode returns the message.
func (m *TakenBack) Encode() []byte { return encodeTakenBack(nil, m) }

// DecodeTakenBack reads a TakenBack. Errors: ErrFormat.
func DecodeTakenBack(data []byte) (TakenBack, error) { return decodeTakenBack(data) }
