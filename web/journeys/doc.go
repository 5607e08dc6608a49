// Package journeys is what people do with the pages, done in a real browser: Chromium, which its scripts
// drive against the program, built and serving in a process of its own.
//
//	account.js   the first account by its link, another's sign-up, address, application, key, call, token, end
//	demo.js      the demonstration: languages, keyboard alone, a narrow page, the reference
//	copies.js    a copy of an application: joined, worked with offline, sent, contradicted, removed; demo.js goes it
//	look.js      pictures read, taught and found in the browser, at three places alike, without a network
//	shots.js     pictures of the pages in the states that the design has drawn: make shots
//	studio.js    a newcomer: pictures, languages, likeness, one request at origin and edge, a model of one's own, offline
//	second.js    an origin that goes, and two edges that go on
//	demonstration.js  starts and stops what these two need
//	browser.js   the browser, and what holds everywhere
//
// Everywhere holds: axe finds nothing, light and dark; no request goes to another host, the browser's
// own among them; nothing is said on the console, and the policy of the pages is kept.
package journeys
