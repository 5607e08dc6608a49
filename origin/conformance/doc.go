// Package conformance holds all that serves /v2, the origin, the edge and a page in a browser, to its clients: the
// vendor's own programs, unmodified, with the specs that they carry in their packages.
//
//	js-specs.cjs       runs the specs of npm's clarifai against a server
//	loopback.cjs       ends that run where it reaches for another host than loopback
//	videos_test.go     the video calls of the clients for Python, Java, C# and PHP
//	page.mjs           a page whose service worker answers, behind a port of loopback
//	package.json       the client and the runner of its specs, pinned; package-lock.json has their hashes
//	node_modules/      made by npm ci
//
// The specs empty the application whose key they are given, and have the server fetch
// pictures from loopback.
package conformance
