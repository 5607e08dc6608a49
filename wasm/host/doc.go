// Package host runs the module under wazero: what package core does natively, in the bounds of a
// guest that owns no socket, file, clock or random source. wasm/README.md is the contract.
//
//	             Fleet ── one writer an application; pictures are analysed natively
//	               │
//	Runtime ──▶ Instance ── Begin, Take, Done, Step, Ask: core.Engine's shapes
//	 compiled      │  ▲
//	 once, or      ▼  │ imports: kv_*, picture_*, token_*, file_*, bundle, now, random, log, kernels
//	 from the    guest
//	 sealed cache
//
// A guest is held to its memory: each import checks every range that it is given, in a fresh
// view of the memory, and answers or ends the instance. The module is the program's own, so its
// calls run without wazero's checks for deadlines, which cost a multiple of the work. A guest that
// traps is dead: its instance reports that from then on, and a Fleet opens another.
//
// The package fetches nothing and holds no keys of clients; who listens on which address is
// decided elsewhere.
package host
