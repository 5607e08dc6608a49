// Package training turns versions that wait at 21103 into trained ones.
//
//	PendingVersions ──Queue.Take──▶ Run ──Step, Step, …──▶ Queue.Done ──▶ log: VersionResult, and the manifest
//	 (the state is                   │
//	  the queue)                     ├ scan     one view of the application: which inputs teach what
//	                                 ├ gather   their embeddings, from derived records
//	                                 └ fit      train.Fitter: head, then its evaluation
//
// A version waits until no input is pending that was there when its training was asked for and
// that has a label for one of its concepts. Then its training set is frozen: everything is read
// from one view, and the manifest names each input with the labels that counted, the place in
// the log, a digest of all that went in, and the head that came out. The manifest and the
// version's result reach the store in one batch, or not at all; after a kill the version is
// still pending and is trained again from the start.
//
// [Again] makes a trained version's head anew from its manifest, bit for bit, or for another
// network from the same inputs.
//
// A run is divided into steps of a few milliseconds for the host to spread over time, and
// belongs to one thread at a time. Nothing here decides when to run or reads a clock.
package training
