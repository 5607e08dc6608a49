// Package api implements /v2 as a function from [Request] to [Response]. It uses no server library, clock, file or socket, and never waits
// for slow work. A call that needs pictures fetched or analysed returns jobs; its host does them and passes the results back.
//
//	          Begin(request)
//	host ────────────────────▶ Service ── route ── admit ── handler ──┐
//	                              │                                   │ no slow work
//	          ◀── Exchange.Jobs() ┘ pictures to fetch and analyse     │
//	fetches, analyses                                                 │
//	          ─── Exchange.Resume(results) ──▶ ── handler ────────────┤
//	          ◀── Exchange.Response() ────────────────────────────────┘
//
// The table in routes.go names the handler of each path. A handler is a function of a [call.Call] in the package of its resource. Imports
// point one way:
//
//	call ◀─ show ◀─ inputs models predict searches workflows apps replica ◀─ api
//
// Another table (call/status.go) maps each error to its status: handlers return errors and never write codes. The envelope and the rules
// for empty values follow the published clients of the interface: the list of an endpoint is in every answer, errors included, and other
// empty values are omitted.
//
// A request reads and writes the application of its credential. Without a credential the service answers only OPTIONS and the two calls
// that create one. The checks have this order (admit.go):
//
//	path ─▶ credential ─▶ rate ─▶ quota ─▶ long path ─▶ scopes ─▶ body ─▶ handler
//	404,405  401          429     402      404          403       400
//
// The route table has the credential and the scopes of each endpoint, as needs of package auth. Answers omit data that a key may not
// read, see [call.Call.Shows].
package api
