// Package host runs the module under wazero: what package core does natively, in the bounds of a
// guest that owns no socket, file, clock or random source. wasm/README.md is the contract.
//
//	             Fleet ── one writer an application, a pool of analysers, swapped while it serves
//	               │
//	Runtime ──▶ Instance ── Begin, Take, Done, Step, Analyse, Ask: core.Engine's shapes
//	 compiled      │  ▲
//	 once, or      ▼  │ imports: kv_*, picture_*, token_*, file_*, bundle, now, random, log, kernels
//	 from the    guest
//	 sealed cache
//
// A guest is held to its memory: each import checks every range that it is given, in a view of the
// memory that it takes anew, and answers or ends the instance. A module that is trusted, since it
// is the program's own, runs without wazero's checks for deadlines, which cost a multiple of the
// work; any other runs with them and is stopped when a call's time is over. Either way a guest that
// traps is dead: its instance says so from then on, and a Fleet opens another.
//
// The package fetches nothing and holds no keys of clients; who listens on which address is
// decided elsewhere.
package host
