package call

import (
	"errors"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// SyncStatus is the status of a copy, as far as its replica knows. It never counts unsent operations as sent, or unconfirmed ones as
// confirmed.
type SyncStatus struct {
	Origin   string // address of the origin; empty: nobody says
	Phase    string // what is being done, such as "current"
	Head     uint64 // last entry of the origin's log, as it said last
	Contact  time.Time
	AsOf     time.Time // when it last had no later entries than the copy; zero: not yet
	Accepted uint64    // last own operation that the origin says its log has
	Folded   uint64    // last one that its log has brought back
	Denied   string    // why the origin refuses the copy; empty: it does not, or was not asked
	Problem  string    // what goes wrong; empty: nothing
	Retry    time.Time // when the next try is made; zero: nothing waits for one
}

// Phases of a copy.
const (
	unkept = "stopped" // nobody keeps it in step now
	inSync = "current"
)

// errNoCopy is the answer of an application that is not a copy.
var errNoCopy = &fault{ErrPath, "This application is not a replica. Writes are in its log at once. " +
	"These calls are for replicas, at an edge or in a browser, which store writes until the origin confirms them."}

// Replica returns the request's application, and its status as a copy. The error is errNoCopy.
func (x *Call) Replica() (*partition.Partition, SyncStatus, error) {
	p := x.App.Partition
	if !p.IsReplica() {
		return nil, SyncStatus{}, errNoCopy
	}
	if x.Host.Copies != nil {
		if s, ok := x.Host.Copies(x.App.ID); ok {
			return p, s, nil
		}
	}
	_, confirmed := p.Outbox()
	return p, SyncStatus{Phase: unkept, Head: p.Cursor().Seq, Accepted: confirmed, Folded: confirmed}, nil
}

// Absent refuses a deletion that names things unknown to a copy that is not in sync: its origin may have them, and would
// keep them. Things that the copy knows to be deleted are no error, so a caller may repeat a call.
func (x *Call) Absent(kind error, ids []string) error {
	p, s, err := x.Replica()
	if errors.Is(err, errNoCopy) || err == nil && (len(ids) == 0 || s.Phase == inSync) {
		return nil
	}
	var all bool // all of them are deleted by an operation of the copy's own
	var made []log.Body
	if err == nil {
		err = p.LocalOps(s.Folded, func(op log.Op) bool {
			switch op.Body.(type) {
			case *log.InputDelete, *log.ModelDelete:
				made = append(made, op.Body)
			case *log.InputDeleteAll:
				all = all || kind == ErrNoInput
			case *log.ModelDeleteAll:
				all = all || kind == ErrPath
			}
			return true
		})
	}
	deleted := map[string]bool{}
	for _, body := range made {
		id, failed := p.NameOf(body)
		err = errors.Join(err, failed)
		deleted[id] = true
	}
	var unknown []string
	for _, id := range ids {
		known := all || deleted[id]
		if !known && kind == ErrNoInput && err == nil {
			_, known, err = p.LastDeletion(id)
		}
		if !known {
			unknown = append(unknown, id)
		}
	}
	if err != nil || len(unknown) == 0 {
		return err
	}
	return Refusef(kind, "Unknown here: %s. This replica is not in sync with its origin, which may have more. Nothing was deleted. "+
		"Try again when the replica is in sync, or at the origin.", strings.Join(unknown, ", "))
}
