// Package ingest processes the pending inputs of an application until each is ready or failed.
//
//	state: inputs at 30001 ──Take──▶ tasks: fetch, analyse ──host──▶ Done ──▶ InputFetched, one
//	         ▲    in order                                            │       batch with what was
//	         │                                                        │       derived: 30000, or
//	         └──────── again after 1, 5 and 25 s ◀── may pass ────────┘       an error's code
//
// The queue is the state itself. A [Worker] notes only in memory which inputs are taken and which wait for another try. A restart loses
// nothing: the worker takes an input at 30001 again after the next start. If the analysis of a picture fails on our side again and again,
// the input ends as an error too, so that it blocks no other input.
//
// The worker of a replica takes the inputs that it created. The worker of a partition that has the log takes all inputs. The
// first result of a download counts. A later version of the program may read a file that an earlier one could not, or further dates:
// [Worker.StepBacklog] finds such inputs. An unread one is downloaded once more. The stored picture of an undated one is read once.
//
// [Worker.Watch] gets every change of the inputs. So the worker notices at once new inputs, and pictures that may have lost their last
// input.
//
// The package fetches nothing, runs no loop and reads no clock. Its host does.
package ingest
