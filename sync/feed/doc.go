// Package feed is the origin's side of the sync protocol: the calls below /v2/sync, whose
// messages are package wire's and whose specification is sync/README.md.
//
//	POST session             greeting ──▶ site, what to do about each application, limits
//	GET  changes             register, derived, objects, entries … checkpoint … keepalive …
//	POST push                operations of one site ──▶ how far the log has them
//	GET  snapshot[/HASH]     manifest, chunks
//	GET  digest              nodes of the tree of digests
//	POST blobs/have          which pictures are here
//	GET, HEAD, PUT blobs/HASH    a picture or an object, any part of it
//	GET  keys                the register
//	POST enrol               an edge's token, once ──▶ its site
//
// Who asks is an application's key or token with every scope, or an edge that signs with its
// own key. All that a request names is held to that: another application's log, pictures and
// snapshots do not exist for it, and a site is its own only with the site's secret. A hash is no
// capability: bytes are shown where the application refers to them.
//
// A reader costs what it is sent. There is no queue: the next frame is made when the one before
// has been taken, from the log and where the reader says that it stands, and a reader that is
// cut off comes back with its cursor. While it waits it holds a channel and no buffer.
//
// Nothing here reads a socket, a clock or a random source, and nothing starts a goroutine: the
// host lends what waits ([Options.Wait]) and writes the streams.
package feed
