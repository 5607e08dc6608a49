package wire

import "github.com/sightline-dev/sightline/core/log"

// Back offers log entries to an origin that was restored from a backup. The replica stored the entries when it pulled them.
//
//field:message
//field:reserved 2 7 9 10 11
type Back struct {
	App   string    `wire:"1"` // id of the application
	Epoch log.Epoch `wire:"3"` // epoch of the current log
	From  uint64    `wire:"4"` // position before the first entry, in the earlier log
	Chain log.Chain `wire:"5"` // chain of the earlier log at `from`
	Block []byte    `wire:"6"` // block of the entries; see *Rows*
	Seal  []byte    `wire:"8"` // seal that the replica received with the last of the entries
	// the entries come from `epoch` or a later epoch. If the log lacks them, they prove that the origin's disk was rolled back. See
	// *After a rollback*
	Present bool   `wire:"12"`
	Extra   []byte `wire:"*"`
}

// Encode returns the message.
func (m *Back) Encode() []byte { return encodeBack(nil, m) }

// DecodeBack reads a Back, whose Block borrows data. Errors: ErrFormat.
func DecodeBack(data []byte) (Back, error) { return decodeBack(data) }

// TakenBack is the answer to a Back. The log has the entries, or the origin lists them as conflicts.
//
//field:message
//field:reserved 3 4
type TakenBack struct {
	Epoch log.Epoch `wire:"1"` // epoch of the log
	To    uint64    `wire:"2"` // last entry that the origin accepted or listed
	Extra []byte    `wire:"*"`
}

// Encode returns the message.
func (m *TakenBack) Encode() []byte { return encodeTakenBack(nil, m) }

// DecodeTakenBack reads a TakenBack. Errors: ErrFormat.
func DecodeTakenBack(data []byte) (TakenBack, error) { return decodeTakenBack(data) }
