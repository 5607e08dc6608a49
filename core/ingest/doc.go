// Package ingest brings the pending inputs of an application to their end.
//
//	state: inputs at 30001 ──Take──▶ tasks: fetch, analyse ──host──▶ Done ──▶ InputFetched, one
//	         ▲    in order                                            │       batch with what was
//	         │                                                        │       derived: 30000, or
//	         └──────── again after 1, 5 and 25 s ◀── may pass ────────┘       an error's code
//
// The queue is the state itself. What a [Worker] holds in memory, which inputs are taken and
// which wait for another try, is forgotten with the program and nothing is lost: an input at
// 30001 is taken again after the next start. A picture whose analysis fails on our side, time
// after time, ends as an error too, so that it holds up nothing.
//
// A replica takes the inputs that its own site has made; a partition that has the log takes all.
// The first result of a download counts.
//
// The worker sees every change of the inputs through [Worker.Watch], and so knows at once of
// new ones, and of pictures that may have lost their last input.
//
// It fetches nothing, runs no loop and asks no clock: its host does.
package ingest
