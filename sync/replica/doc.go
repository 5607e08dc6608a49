// Package replica is one copy of an application talking to its origin: what it asks, in which
// order, and what it believes of the answers. It is a state machine without sockets, clocks or
// goroutines: a host hands it events and does what it wants.
//
//	Begin Wake Local Answer Offline Online …
//	     │
//	┌────▼──────────────── Machine ───────────────────────────┐
//	│ session    who we are, where we stand: tail or snapshot │
//	│ rebase     a snapshot in pieces, resumed by hash        │     Partition
//	│ ahead      the piece after the one that is on its way   │
//	│ pull       frames ─▶ one batch a run                    │ ──▶ state, cursor,
//	│ upload     pictures before what names them              │     outbox
//	│ push       the outbox, by position                      │
//	│ audit      digests down to the leaf that differs        │ ──▶ Blobs
//	│ download   pictures that are wanted                     │
//	└────┬────────────────────────────────────────────────────┘
//	     ▼
//	Ask Cancel WakeAt Got Changed Purge
//
// Each of these lanes has at most one request under way and pauses of its own after a failure:
// half a second, doubling to a minute, with chance. So no lane waits for another's failure, and
// an answer that is lost, late, doubled, cut or malicious costs a request and nothing else.
//
// The machine keeps nothing that has to be right. Where the replica stands, and which operations
// are its own to offer, is the partition's and changes in one batch with the state; what the
// origin has is asked at the beginning of a session. An operation is told to be confirmed when the
// origin's log has brought it back, never because an answer said so.
//
// The cursor and the outbox by position are what Litestream and PowerSync taught; the rules
// that the tests check are what their users complained about. The machine holds no
// credentials: the host adds them to each request.
package replica

//go:generate go run ../../core/log/field/gen
