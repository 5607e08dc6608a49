// Package test tests the runtime of web/runtime from outside, as pages and programs use it: its scripts in Node, and the module,
// built from the sources of this project, in Node and in a browser.
//
//	*.test.ts     the scripts alone, with a module that does what a test asks (guest)
//	pages/*.js    a browser, a server on loopback, and the module
//	node/*.js     the module in Node
//	films/*.js    the test films in Node
//	same/*.js     both, an origin and an edge, with the same pictures
package test
