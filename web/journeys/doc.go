// Package journeys tests in a real browser what people do with the pages. The scripts drive Chromium against the program, which runs in a
// separate process.
//
//	account.js   an account: the first account by its link, sign-up, verification, application, key, calls, deletion
//	demo.js      the demonstration: languages, keyboard alone, a narrow page, the API reference
//	copies.js    a replica in the browser: joining, offline changes, sending, a conflict, removal; part of demo.js
//	leaving.js   a shared device: sign-out with both answers, offline copies and their accounts, deletion of an account
//	draw.js      shapes on the map of a search: the drawn one is the searched one, by mouse, finger and keys
//	look.js      the Look page: the browser analyses, trains and searches like an origin and an edge, also offline
//	states.js    pages without content: each names the missing thing and offers an action
//	shots.js     pictures of the pages in the states that the design shows, and the picture in README.md: make shots
//	studio.js    a newcomer's first minutes; the next three scripts are its parts
//	finding.js   searches: similar pictures against a plain scan, three clauses in three programs, one call at an edge
//	offline.js   without a network: the pages start, accept pictures, train, correct and store
//	returning.js with a network again: changes are sent, conflicts are shown, all places are equal
//	alone.js     only offline.js and returning.js
//	second.js    an origin that stops, and two edges that keep working
//	edge.js      Studio at an edge: a key is pasted, the origin is killed, and later it receives the changes
//	sweep.js     every page at every size, in four languages, light and dark
//	keys.js      everything by keyboard alone
//	video.js     videos recognised in the browser: frames, keys, a saved frame, and a file that cannot be read
//	grid.js      scrolling of the grid: a few inputs, or 100,000 with make soak LAW=Grid; trace.js measures it
//	salvage.js   files of a browser that are damaged: the pages keep the readable part, send it, and get the replica again
//	kill.js      a tab that is killed while a person labels pictures by keys
//	adding.js    an addition of pictures that is interrupted at random moments
//	marks/       random programs: after each step, every sync mark and contradiction of the pages agrees with the origin's log
//	demonstration.js  starts and stops an origin and its edges
//	servers.js   starts a server, and a connection to it that a test cuts
//	pictures.js  screens.js  the samples, tiles, sizes and languages
//	browser.js   the browser, and the checks of every page
//
// Every journey makes these checks: axe finds nothing, light and dark. No request goes to another host: a proxy refuses
// the browser's requests to its maker. The console has no unexpected message, and no page violates the content security policy.
// complaints_test.go lists the promises of this project with the tests that check each promise, here and in other packages.
package journeys
