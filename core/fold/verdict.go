package fold

import (
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// Code is the result of an operation. The zero Code means that there is no verdict.
type Code uint8

// The codes.
const (
	OK         Code = 1 + iota // the operation has its effect
	Superseded                 // later writes supersede everything that it writes
	Duplicate                  // another record has the id or the URL; see Ord and Dot
	Gone                       // its target was deleted or never existed
	Stale                      // its clock is below the horizon
	Refused                    // it is invalid; Detail has the reason
)

var codeNames = [...]string{"", "ok", "superseded", "duplicate", "gone", "stale", "refused"}

// String returns the code's name, such as "ok".
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "unknown"
}

// Verdict is the result of one operation.
type Verdict struct {
	Code   Code    `wire:"1"`
	Detail string  `wire:"2"` // "id" or "url" of a Duplicate; "schema: …" of a Refused; may be empty
	Ord    uint32  // ordinal of the input that the operation created or concerns, if it is live
	Dot    log.Dot `wire:"3"` // dot of the record that the operation created, or of the record that blocks it
	ID     string  `wire:"4"` // id of the record that the operation created: the given id or a generated one
}

// Change is one step in the life of an input, in the order of the log.
type Change struct {
	Before *catalog.Input // nil: it is created
	After  *catalog.Input // nil: it is deleted
}

// Outcome has the changes of inputs by a run of entries.
type Outcome struct {
	DeletedAll bool     // before the changes, all inputs were deleted
	Changes    []Change // in the order of the log; those before a deletion of all are left out
}
