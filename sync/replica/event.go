package replica

import (
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
)

// Event is an event of the host: one of the types below.
type Event interface{ event() }

// The events.
type (
	// Begin starts the machine, or starts it again after Stop.
	Begin struct{}

	// Wake reports that the time of the last WakeAt has come. An early, late or unrequested Wake does no harm.
	Wake struct{}

	// LocalWrite reports that an operation was submitted to the partition. The machine pushes it at once.
	LocalWrite struct{}

	// Answer is the answer to an Ask, or a piece of it. Pieces arrive in order. The first has Status and Header, and only the last has More
	// false. Err ends the answer: only the previous pieces arrived, or nothing. Body is borrowed until Step returns.
	Answer struct {
		ID     uint64 // ID of the Ask
		Status int
		Header []api.Field
		Body   []byte
		More   bool
		Err    error

		// Sum is the SHA-256 of the complete body, in the last piece. A native host computes it thirty times as fast as a guest. If it is
		// zero, the machine computes it where it needs it.
		Sum blob.Hash

		// Placed reports that the host has stored the requested chunk by [Place]. Then Body is empty and Sum is set.
		Placed bool
	}

	// BlobWanted asks for a blob that a reader lacks. The answer is BlobReady, at once if the blob is stored here.
	BlobWanted struct{ Blob blob.Hash }

	// Offline reports that the host has no network path to the origin. The machine cancels its requests and asks nothing until Online.
	Offline struct{}

	// Online ends Offline. Without a previous Offline it makes the machine retry at once.
	Online struct{}

	// Stop ends the machine in order. It cancels its requests and makes no new ones.
	Stop struct{}
)

func (Begin) event()      {}
func (Wake) event()       {}
func (LocalWrite) event() {}
func (Answer) event()     {}
func (BlobWanted) event() {}
func (Offline) event()    {}
func (Online) event()     {}
func (Stop) event()       {}

// Effect is a request of the machine to its host: one of the types below.
type Effect interface{ effect() }

// The effects.
type (
	// Ask is a request to the origin. The host adds credentials, limits the time for connecting, and passes each piece of the answer to the
	// machine before it reads the next. The host must not repeat an Ask whose answer was cut off: the machine does that.
	Ask struct {
		ID     uint64 // unique number, used in Answer and Cancel
		Method string
		Path   string // path below the origin's URL, such as "/v2/sync/push"
		Query  string // without '?'
		Header []api.Field
		Body   []byte // owned by the machine; unchanged until the answer or Cancel
		Stream bool   // the answer lasts as long as the connection
		Place  bool   // the answer will be a snapshot chunk: the host may [Place] it and report that in Answer
	}

	// Cancel cancels a request. The machine ignores later pieces of its answer.
	Cancel struct{ ID uint64 }

	// WakeAt asks for a Wake at a time, and replaces the previous WakeAt. The host waits for the duration from now until then, so that a
	// change of the clock does not delay it.
	WakeAt struct{ At time.Time }

	// BlobReady answers a BlobWanted: the blob is stored, or Err is the reason why not.
	BlobReady struct {
		Blob blob.Hash
		Err  error
	}

	// StatusChange reports a change of Status that a person sees.
	StatusChange struct{}

	// InstallSnapshot passes a complete snapshot to a host that installs it itself, by [ApplySnapshot] on another partition; see
	// Options.NativeSnapshots. The machine has ended in any case. The host creates another one over the new state.
	InstallSnapshot struct{ Manifest []byte }

	// Purge reports that the replica may no longer store the application: it was deleted, or left the replica's scope. The machine has
	// stopped for good. The host deletes the store: state, pictures and, unless KeepOutbox is set, own operations.
	Purge struct {
		Reason     string
		KeepOutbox bool // the application exists, but outside the scope: only this replica has the operations in its outbox
	}
)

func (Ask) effect()             {}
func (Cancel) effect()          {}
func (WakeAt) effect()          {}
func (BlobReady) effect()       {}
func (StatusChange) effect()    {}
func (InstallSnapshot) effect() {}
func (Purge) effect()           {}
