// Package test tests the runtime of web/runtime from outside, as pages and programs use it. It runs the scripts in Node, and the module
// that make builds in Node and in a browser.
//
//	*.test.ts     the scripts alone, with a module that follows a test's commands (guest)
//	pages/*.js    the module in a browser, with a server on loopback
//	node/*.js     the module in Node
//	films/*.js    the test films in Node
//	same/*.js     the same pictures at an origin, at an edge, in Node and in a browser
//	tab, folder   replicas in a browser and in Node, for the tests of package edge
package test
