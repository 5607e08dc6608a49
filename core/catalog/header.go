package catalog

import "github.com/sightline-dev/sightline/core/log"

// Header is the fold's record about the whole partition. It is written in the batch of the changes that it describes.
//
//field:message header
type Header struct {
	Seq      uint64   `wire:"1"`       // of the last entry that was folded: the fold's cursor
	Fold     uint32   `wire:"2"`       // version of the rules
	Next     uint32   `wire:"3"`       // ordinal of the next input
	Counts   Counts   `wire:"+3"`      // of live inputs
	Horizon  log.HLC  `wire:"7,fixed"` // field writes below it are refused
	Barrier  log.HLC  `wire:"8,fixed"` // creates below it are refused
	Clock    log.HLC  `wire:"9,fixed"` // highest in the log
	Concepts uint64   `wire:"10"`      // own concepts
	Sites    uint32   `wire:"12"`      // last site that was leased or skipped, in the control partition; 0: none
	Base     [32]byte `wire:"11"`      // the base model that serves, see predict.Set.Base; zero: none was named
	Extra    Extra    `wire:"*"`
}

// IsHeader reports whether a key, without the application's id, is the header's.
func IsHeader(key []byte) bool { return len(key) == 1 && key[0] == tableHeader }

// DecodeHeader reads a header's record. Errors: field.ErrFormat.
func DecodeHeader(data []byte) (Header, error) { return decodeHeader(data) }
