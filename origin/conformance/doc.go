// Package conformance tests every server of /v2, which are the origin, the edge and a page in a browser, with the
// vendor's own clients, unmodified, and with the specs in their packages.
//
//	js-specs.cjs       runs the specs of npm's clarifai against a server
//	loopback.cjs       ends that run if it connects to another host than loopback
//	videos_test.go     the video calls of the clients for Python, Java, C# and PHP
//	page.mjs           a page whose service worker answers, behind a port of loopback
//	package.json       the client and the runner of its specs, pinned; package-lock.json has their hashes
//	node_modules/      created by npm ci
//
// The specs delete all data of the application whose key they get, and make the server fetch
// pictures from loopback.
package conformance
