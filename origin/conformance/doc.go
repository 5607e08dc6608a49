// Package conformance holds the servers, the origin and the edge, to their clients: the vendor's own programs, unmodified,
// with the specs that they carry in their packages.
//
//	js-specs.cjs       runs the specs of npm's clarifai against a server
//	package.json       the client and the runner of its specs, pinned; package-lock.json has their hashes
//	node_modules/      made by npm ci
//
// The specs empty the application whose key they are given, and have the server fetch
// pictures from loopback.
package conformance
