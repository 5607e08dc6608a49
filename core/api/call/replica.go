package call

import (
	"errors"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// SyncStatus is the sync status of a replica, from the replica's view. It never counts unsent operations as sent, or unconfirmed
// operations as confirmed.
type SyncStatus struct {
	Origin   string // address of the origin; empty if unknown
	Phase    string // current activity, such as "current"
	Head     uint64 // last entry of the origin's log, in its latest report
	Contact  time.Time
	AsOf     time.Time // time of the last contact at which the replica had all entries; zero: never
	Accepted uint64    // last local operation that the origin reports to be in its log
	Folded   uint64    // last local operation that came back in the origin's log
	Denied   string    // reason why the origin refuses the replica; empty if it does not, or was not asked
	Problem  string    // current failure; empty if there is none
	Limit    string    // name of the origin's limit that stops the sending of local operations; empty if there is none
	Retry    time.Time // time of the next attempt; zero if none is scheduled
	Name     string    // name of the replica, for people
	Kind     string    // kind of the replica, see Device; empty: a folder
	KeysAsOf time.Time // last time when the origin confirmed the keys that an edge stores; zero: never
}

// Device is a host that has an application.
type Device struct {
	ID       string // of an edge, or one that the replica has chosen; empty: none
	Name     string
	Kind     string    // "origin", "edge", "page" or "folder"
	Contact  time.Time // last contact with the origin; zero: never
	Position uint64    // last entry of the log that it has, as far as known
	KeysAsOf time.Time // last time when the origin confirmed the keys that an edge stores; zero: never, or it stores none
}

// Phases of a replica.
const (
	stopped = "stopped" // nothing synchronizes it now
	inSync  = "current"
)

// errNotReplica is the error for an application that is not a replica.
var errNotReplica = &fault{ErrPath, "This application is not a replica. Writes are in its log at once. " +
	"These calls are for replicas, at an edge or in a browser, which store writes until the origin confirms them."}

// Replica returns the application's replica and sync status. If it is not a replica, the error is errNotReplica.
func (x *Call) Replica() (*partition.Replica, SyncStatus, error) {
	p := x.App.Replica
	if p == nil {
		return nil, SyncStatus{}, errNotReplica
	}
	if x.Host.SyncStatus != nil {
		if s, ok := x.Host.SyncStatus(x.App.ID); ok {
			return p, s, nil
		}
	}
	_, confirmed := p.Outbox()
	return p, SyncStatus{Phase: stopped, Head: p.Cursor().Seq, Accepted: confirmed, Folded: confirmed}, nil
}

// Absent rejects a deletion of ids that a replica does not know and that its origin may have, since the origin would then
// keep them. It returns nil if the replica is in sync, and for ids that the replica knows to be deleted: a caller may repeat a call.
func (x *Call) Absent(kind error, ids []string) error {
	p, s, err := x.Replica()
	if errors.Is(err, errNotReplica) || err == nil && (len(ids) == 0 || s.Phase == inSync) {
		return nil
	}
	var all bool // an operation of the replica deletes all of them
	var deletions []log.Body
	if err == nil {
		err = p.LocalOps(s.Folded, func(_ uint64, op log.Op) bool {
			switch op.Body.(type) {
			case *log.InputDelete, *log.ModelDelete:
				deletions = append(deletions, op.Body)
			case *log.InputDeleteAll:
				all = all || kind == ErrNoInput
			case *log.ModelDeleteAll:
				all = all || kind == ErrPath
			}
			return true
		})
	}
	deleted := map[string]bool{}
	for _, body := range deletions {
		id, failed := p.SubjectID(body)
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
