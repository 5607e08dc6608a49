package replica

import (
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
)

// Event is what the host tells the machine: one of the types below.
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

	// Answer brings the answer to an Ask, whole or a piece of it. Pieces come in order, as they
	// arrive; the first has Status and Header, and More is false in the last alone. Err ends
	// the answer: nothing, or only what came before, arrived. Body is borrowed until Step returns.
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

		// Placed says that the host has put the piece that was asked for in its place by [Place]. There is no Body then, but a Sum.
		Placed bool
	}

	// Need asks for a blob that a reader misses. It is answered by Got, at once where the blob
	// is here.
	Need struct{ Blob blob.Hash }

	// Offline says that the host knows of no way to the origin: nothing is asked until Online.
	// Requests under way are given up.
	Offline struct{}

	// Online ends Offline; while there was none it makes the machine try again at once.
	Online struct{}

	// Stop ends the machine in order: requests under way are given up, nothing more is asked.
	Stop struct{}
)

func (Begin) event()   {}
func (Wake) event()    {}
func (Local) event()   {}
func (Answer) event()  {}
func (Need) event()    {}
func (Offline) event() {}
func (Online) event()  {}
func (Stop) event()    {}

// Effect is what the machine wants of its host: one of the types below.
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
		Stream bool   // the answer goes on for as long as the connection lives
		Place  bool   // of a piece of a snapshot: the host may try [Place] on it, and say so in Answer
	}

	// Cancel gives up a request. Pieces of its answer that come later are ignored.
	Cancel struct{ ID uint64 }

	// WakeAt wants a Wake at a moment, in the place of any that was wanted before. The host
	// takes it as the time from now until then, so that a clock that is set does not hold it back.
	WakeAt struct{ At time.Time }

	// Got ends a Need: the blob is held, or Err says why not.
	Got struct {
		Blob blob.Hash
		Err  error
	}

	// Changed says that what Status tells has changed in what a person is shown.
	Changed struct{}

	// Take hands a complete snapshot to a host that can take it itself, by [TakeSnapshot] on a partition of its own; see
	// Options.Takes. The machine ends here in any case. The host makes another one over the new state.
	Take struct{ Manifest []byte }

	// Purge says that the application is no longer for this replica to hold: it was deleted, or
	// taken from its scope. The machine has stopped for good. The host removes what it was
	// opened over: state, pictures and, unless KeepOutbox is set, its own operations too.
	Purge struct {
		Why        string
		KeepOutbox bool // the application is there, but outside the scope: own operations are nobody else's to drop
	}
)

func (Ask) effect()     {}
func (Cancel) effect()  {}
func (WakeAt) effect()  {}
func (Got) effect()     {}
func (Changed) effect() {}
func (Take) effect()    {}
func (Purge) effect()   {}
