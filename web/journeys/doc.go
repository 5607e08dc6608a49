// Package journeys tests what people do with the pages, in a real browser. The scripts drive Chromium against the program, which is built
// and serves in a separate process.
//
//	account.js   the first account by its link, another's sign-up, address, application, key, call, token, end
//	demo.js      the demonstration: languages, keyboard alone, a narrow page, the reference
//	copies.js    a copy of an application: joined, changed offline, sent, contradicted, removed; part of demo.js
//	look.js      pictures read, taught and found in the browser, at three places alike, without a network
//	shots.js     pictures of the pages in the states that the design has drawn, and the one in README.md: make shots
//	studio.js    a newcomer's first minutes; its parts are
//	finding.js   likeness against a plain scan, three clauses as three programs, one call at origin and edge
//	offline.js   without a network: started, taught, corrected, labelled, and stored
//	returning.js with a network again: sent, contradicted, and everywhere the same
//	alone.js     offline.js and returning.js alone
//	second.js    an origin that stops, and two edges that keep working
//	edge.js      Studio at an edge: a key is pasted, the origin killed, changes continue and reach the origin later
//	sweep.js     every page at every size, in four languages, light and dark
//	keys.js      everything by keyboard alone
//	video.js     videos recognised in the browser: frames, keys, a saved frame, and a file that cannot be read
//	grid.js      how the grid scrolls, with a few inputs; with 100,000 by make soak LAW=Grid; trace.js measures it
//	kill.js      pictures labelled by keys, and the tab killed meanwhile
//	demonstration.js  starts and stops an origin and its edges
//	pictures.js  screens.js  the samples, tiles, sizes and languages
//	browser.js   the browser, and the checks of every page
//
// Every journey makes these checks: axe finds nothing, light and dark. No request goes to another host: a proxy refuses the browser's own
// requests to its maker. The console has no message, and no page violates the content security policy. complaints_test.go lists the
// promises of this project with the tests that check each of them, here and in other packages.
package journeys
