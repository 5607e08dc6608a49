package catalog

import "github.com/sightline-dev/sightline/core/log"

// Header is the fold's record about the whole partition. The fold writes it in the batch of the changes that it describes.
//
//field:message header
type Header struct {
	Seq            uint64   `wire:"1"`       // number of the last folded entry: the fold's cursor
	Fold           uint32   `wire:"2"`       // version of the fold's rules
	Next           uint32   `wire:"3"`       // ordinal of the next input
	Counts         Counts   `wire:"+3"`      // of live inputs
	Horizon        log.HLC  `wire:"7,fixed"` // the fold refuses field writes below it
	Barrier        log.HLC  `wire:"8,fixed"` // the fold refuses creates below it
	Clock          log.HLC  `wire:"9,fixed"` // highest clock in the log
	Concepts       uint64   `wire:"10"`      // number of custom concepts that were created
	Sites          uint32   `wire:"12"`      // last site that was leased or skipped, in the control partition; 0: none
	Base           [32]byte `wire:"11"`      // base of the network that serves, see predict.Set.Base; zero: none was set
	Contradictions uint32   `wire:"13"`      // number of registers with contradictory values
	Dropped        uint64   `wire:"14"`      // number of the oldest ones that left
	Extra          Extra    `wire:"*"`
}

// IsHeaderKey reports whether a key without the application's id is the key of the header.
func IsHeaderKey(key []byte) bool { return len(key) == 1 && key[0] == tableHeader }

// DecodeHeader decodes a header. The error is field.ErrFormat.
func DecodeHeader(data []byte) (Header, error) { return decodeHeader(data) }
