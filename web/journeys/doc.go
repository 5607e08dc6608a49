// Package journeys is what people do with the pages, done in a real browser: Chromium, which its scripts
// drive against the program, built and serving in a process of its own.
//
//	account.js   the first account by its link, another's sign-up, address, application, key, call, token, end
//	demo.js      the demonstration: languages, keyboard alone, a narrow page, the reference
//	copies.js    a copy of an application: joined, worked with offline, sent, contradicted, removed; demo.js goes it
//	look.js      pictures read, taught and found in the browser, at three places alike, without a network
//	shots.js     pictures of the pages in the states that the design has drawn, and the one in README.md: make shots
//	studio.js    a newcomer's first minutes; its parts are
//	finding.js   likeness against a plain scan, three clauses as three programs, one call at origin and edge
//	offline.js   without a network: started, taught, corrected, labelled, and kept
//	returning.js with one again: sent, contradicted, and everywhere the same
//	alone.js     offline.js and returning.js alone
//	second.js    an origin that goes, and two edges that go on
//	edge.js      Studio at an edge: a key is pasted, the origin killed, the work goes on and comes to the origin
//	sweep.js     every page at every size, in three languages, light and dark
//	keys.js      everything by keyboard alone
//	video.js     videos recognised in the browser: frames, keys, a saved frame, and what cannot be read
//	grid.js      how the grid scrolls, with a few inputs; with 100,000 by make soak LAW=Grid; trace.js measures it
//	kill.js      pictures labelled by keys, and the tab killed meanwhile
//	demonstration.js  starts and stops an origin and its edges
//	pictures.js  screens.js  the samples, tiles, sizes and languages
//	browser.js   the browser, and what holds everywhere
//
// Everywhere holds: axe finds nothing, light and dark; no request goes to another host, the browser's
// own among them; nothing is said on the console, and the policy of the pages is kept. complaints_test.go says
// which of them, and which tests elsewhere, hold us to what is promised.
package journeys
