package wire

import "github.com/sightline-dev/sightline/core/log"

// Back offers log entries to an origin that was restored from a backup. The replica stored the entries when it pulled them.
//
//field:message
//field:reserved 2
type Back struct {
	App       string     `wire:"1"`              // id of the application
	Epoch     log.Epoch  `wire:"3"`              // epoch of the current log
	From      uint64     `wire:"4"`              // position before the first entry, in the earlier log
	Chain     log.Chain  `wire:"5"`              // chain of the earlier log at `from`
	Block     []byte     `wire:"6"`              // block of the entries; see *Blocks*. Absent: the replica only asks for `confirmed`
	Lives     []SiteLife `wire:"7,max=2*MaxOps"` // lives that made the entries, and the operations of earlier requests that these follow
	Seal      []byte     `wire:"8"`              // seal that the replica received with the last of the entries
	Site      log.Writer `wire:"9"`              // site of the replica, if it asks for `confirmed`
	Confirmed uint64     `wire:"10"`             // last own operation that the replica pulled with the log
	Issued    uint64     `wire:"11"`             // last own operation. If the log has others of the site, the replica asks again: N
	// the entries come from `epoch` or a later epoch. If the log lacks them, they prove that the origin's disk was rolled back. See
	// *After a rollback*
	Present bool   `wire:"12"`
	Extra   []byte `wire:"*"`
}

// SiteLife is a life of a replica that writes as Site.
type SiteLife struct {
	Site log.Writer `wire:"1"`
	Life `wire:"+1"`
}

// Encode returns the message.
func (m *Back) Encode() []byte { return encodeBack(nil, m) }

// DecodeBack reads a Back, whose Block borrows data. Errors: ErrFormat.
func DecodeBack(data []byte) (Back, error) { return decodeBack(data) }

// TakenBack is the answer to a Back. The log has the entries, or the origin lists them as conflicts.
//
//field:message
type TakenBack struct {
	Epoch     log.Epoch `wire:"1"`              // epoch of the log
	To        uint64    `wire:"2"`              // last entry that the origin accepted or listed
	Confirmed uint64    `wire:"3"`              // last operation of the replica's site that the log has
	Lives     []Life    `wire:"4,max=maxLives"` // lives of the operations after the Back's `confirmed`, up to `issued` or this `confirmed`
	Extra     []byte    `wire:"*"`
}

// Encode returns the message.
func (m *TakenBack) Encode() []byte { return encodeTakenBack(nil, m) }

// DecodeTakenBack reads a TakenBack. Errors: ErrFormat.
func DecodeTakenBack(data []byte) (TakenBack, error) { return decodeTakenBack(data) }
