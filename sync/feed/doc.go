// Package feed is the origin's side of the sync protocol: the calls below /v2/sync. Package wire has the messages, and sync/README.md is
// the specification.
//
//	POST session             request ──▶ what to do about each application, limits
//	GET  changes             app record, derived, objects, entries … checkpoint … keepalive …
//	POST push                operations of one writer ──▶ the last one that the log has
//	GET  snapshot[/HASH]     manifest, chunks
//	GET  digest              digest of the state
//	POST back                frames that a log lacks ──▶ the last entry that it took back
//	POST dates               dates of pictures, for derived records of an earlier release
//	POST blobs/have          pictures and objects that the origin has, and partial uploads
//	GET, HEAD, PUT blobs/HASH    a picture or an object, any part of it
//	GET  keys                the app record
//	POST enrol               an edge's token, once ──▶ its identity
//
// The caller is an application's key or token with every scope, or an edge that signs with its key. A request has access only to
// the application that it names, and an edge only to those that it replicates. For all others, log, pictures and snapshots do not exist. A
// caller may write as a writer only with its secret. Knowing a hash gives no access: the origin returns bytes only if the application
// refers to them or one of its replicas has uploaded them.
//
// A reader costs as much as the frames it gets. The feed has no queue: when the connection has accepted a frame, the feed makes the next
// one from the log at the reader's cursor. A reader whose connection is lost comes back with its cursor. A waiting reader needs a channel
// and no buffer.
//
// The package uses no socket, clock or random source, and starts no goroutine. The host provides waiting ([Options.Wait]) and writes the
// streams.
package feed
