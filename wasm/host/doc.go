// Package host runs the module under wazero. The module contains package core, as a guest without sockets, files, clock or random source.
// wasm/README.md is the contract.
//
//	             Fleet ── one writer per application; pictures are analysed natively
//	               │
//	Runtime ──▶ Instance ── Begin, Take, Done, Step as in core.Engine; Ask, Sync
//	 compiled      │  ▲
//	 once, or      ▼  │ imports: kv_*, picture_*, token_*, file_*, bundle, now, random, log, kernels
//	 from the    guest
//	 sealed cache
//
// A guest reaches only its own memory. Each import takes a new view of the memory and checks every range in it. If a range is invalid, the
// import ends the instance. The module is trusted, so its calls run without wazero's checks for deadlines, which would take a multiple of
// the time of the work. After a trap, all further calls of the instance fail, and Crashed returns the reason. A Fleet then opens another
// instance.
//
// The package fetches nothing, stores no keys of clients and listens on no address.
package host
