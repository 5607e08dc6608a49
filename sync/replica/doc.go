// Package replica synchronizes one replica of an application with its origin. It is a state machine without sockets, clocks or goroutines:
// a host passes events to it and executes its effects.
//
//	Begin Wake LocalWrite Answer Offline Online …
//	     │
//	┌────▼──────────────── Machine ───────────────────────────┐
//	│ session    identity and cursor: tail or snapshot        │
//	│ rebase     a snapshot in chunks, resumed by hash        │     Partition
//	│ ahead      the chunk after the one in transfer          │
//	│ pull       frames ─▶ one batch a run                    │ ──▶ state, cursor,
//	│ upload     pictures before operations that name them    │     outbox
//	│ push       the outbox, by position                      │
//	│ audit      digest of the state: equal or snapshot       │ ──▶ Blobs
//	│ download   requested pictures                           │
//	└────┬────────────────────────────────────────────────────┘
//	     ▼
//	Ask Cancel WakeAt BlobReady Changed Purge
//
// Each of these lanes has at most one request in flight, and pauses separately after a failure: half a second, doubled up to a minute, with
// jitter. So no lane waits for another's failure, and a lost, late, repeated, incomplete or malicious answer costs one request.
//
// The machine stores nothing that must be correct. The partition has the cursor and the outbox, and changes them in one batch with the
// state. The machine asks the origin at the beginning of a session which operations the origin has. It reports an operation as confirmed
// when the origin's log has brought it back, never because of an answer.
//
// The cursor and the outbox by position follow Litestream and PowerSync. The tests check rules that come from their users' complaints.
// The machine has no credentials: the host adds them to each request.
package replica

//go:generate go run ../../core/log/field/gen
