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

	// Wake says that the moment of the last WakeAt has come. One that comes early, late or
	// unasked does no harm.
	Wake struct{}

	// Local says that something was submitted to the partition: it is pushed at once.
	Local struct{}

	// Answer is the answer to an Ask, or a piece of it. Pieces arrive in order. The first has Status and Header, and only the last has
	// More false. Err ends the answer: only the previous pieces arrived, or nothing. Body is borrowed until Step returns.
	Answer struct {
		ID     uint64 // of the Ask
		Status int
		Header []api.Field
		Body   []byte
		More   bool
		Err    error

		// Sum is the SHA-256 of the whole body, with its last piece, where the host has worked it out: it is
		// thirty times as fast as a guest. Zero: the machine does where it matters.
		Sum blob.Hash

		// Placed reports that the host has stored the requested piece by [Place]. Then there is no Body, but a Sum.
		Placed bool
	}

	// BlobWanted asks for a blob that a reader lacks. The answer is BlobReady, at once if the blob is stored here.
	BlobWanted struct{ Blob blob.Hash }

	// Offline says that the host knows of no way to the origin: nothing is asked until Online.
	// Requests under way are given up.
	Offline struct{}

	// Online ends Offline; while there was none it makes the machine try again at once.
	Online struct{}

	// Stop ends the machine in order: requests under way are given up, nothing more is asked.
	Stop struct{}
)

func (Begin) event()      {}
func (Wake) event()       {}
func (Local) event()      {}
func (Answer) event()     {}
func (BlobWanted) event() {}
func (Offline) event()    {}
func (Online) event()     {}
func (Stop) event()       {}

// Effect is a request of the machine to its host: one of the types below.
type Effect interface{ effect() }

// The effects.
type (
	// Ask is a request to the origin. The host adds what proves who it is, hands every piece
	// of the answer to the machine before it reads the next, and has its own bound on the
	// time in which a connection is made. An Ask whose answer is cut off is never repeated by
	// the host: the machine does that.
	Ask struct {
		ID     uint64 // names it in Answer and Cancel; never used again
		Method string
		Path   string // below the origin's address: "/v2/sync/push"
		Query  string // without '?'
		Header []api.Field
		Body   []byte // the machine's own; unchanged until the answer or Cancel
		Stream bool   // the answer lasts as long as the connection
		Place  bool   // of a piece of a snapshot: the host may try [Place] on it, and report it in Answer
	}

	// Cancel gives up a request. Pieces of its answer that come later are ignored.
	Cancel struct{ ID uint64 }

	// WakeAt asks for a Wake at a time, and replaces the previous request. The host waits for the duration from now until then, so that a
	// change of the clock does not delay it.
	WakeAt struct{ At time.Time }

	// BlobReady ends a BlobWanted: the blob is stored, or Err has the reason why not.
	BlobReady struct {
		Blob blob.Hash
		Err  error
	}

	// StatusChange reports a change of Status that a person sees.
	StatusChange struct{}

	// InstallSnapshot passes a complete snapshot to a host that installs it itself, by [ApplySnapshot] on another partition; see
	// Options.NativeSnapshots. The machine has ended in any case. The host creates another one over the new state.
	InstallSnapshot struct{ Manifest []byte }

	// Purge says that the application is no longer for this replica to hold: it was deleted, or
	// taken from its scope. The machine has stopped for good. The host removes what it was
	// opened over: state, pictures and, unless KeepOutbox is set, its own operations too.
	Purge struct {
		Reason     string
		KeepOutbox bool // the application exists, but outside the scope: only this replica has its own operations
	}
)

func (Ask) effect()             {}
func (Cancel) effect()          {}
func (WakeAt) effect()          {}
func (BlobReady) effect()       {}
func (StatusChange) effect()    {}
func (InstallSnapshot) effect() {}
func (Purge) effect()           {}
