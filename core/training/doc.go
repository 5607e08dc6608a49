// Package training trains the model versions that wait for it, which have the status 21103.
//
//	PendingVersions ──Queue.Take──▶ Run ──Step, Step, …──▶ Queue.Done ──▶ log: VersionResult, and the manifest
//	 (the state is                   │
//	  the queue)                     ├ scan     one view of the application: the inputs to train on
//	                                 ├ gather   their embeddings, from derived records
//	                                 └ fit      train.Fitter: head, then its evaluation
//
// A version waits while an input is pending that existed when the training was requested and that
// has a label for one of the version's concepts. Then its training set is frozen: Run reads everything
// from one view, and the manifest names each input with the labels that counted, the place in
// the log, a digest of the training, and the resulting head. The manifest and the
// version's result reach the store in one batch, or not at all. After a crash the version is
// still pending and is trained again from the start.
//
// [Retrain] trains a trained version again from its manifest: for the same network its head is equal bit for bit.
//
// [Export] returns a version's head. [Import] creates a version from a head that was trained elsewhere, without a training: the request
// and its result reach the log together.
//
// # Digest
//
// The digest of a training is equal wherever equal data is trained, whatever the ids, the times and the order of the inputs,
// and the id of the version. Equal digests mean equal heads. It is the SHA-256 of these bytes, with numbers in four bytes,
// lowest first:
//
//	"sightline training 1\n"
//	core        number   train.EngineVersion
//	network     32 bytes predict.Set.Base, which holds predict.EngineVersion
//	settings    2 bytes  1 if concepts_mutually_exclusive, else 0; 1 if closed_environment, else 0
//	precision   8 bytes  that the cut-offs promise, an IEEE 754 double, lowest byte first
//	concepts    number, then of each, in the order of the model: the number of bytes of its id, its id in UTF-8
//	background  32 bytes SHA-256 of the network's background embeddings, of none in a closed environment
//	examples    number, then of each 32 bytes, ascending: the SHA-256 of
//	              516 bytes  its embedding, as predict.Embedding.MarshalBinary gives it
//	              a byte for each concept, in the same order: 1 labelled true, 255 labelled false, 0 neither
//	              1 byte     1 if it is labelled true with another concept, else 0
//
// An example is an input of the training set that has an embedding. Of more inputs than a training set holds, two
// applications may take different ones, and then have different digests.
//
// A run is divided into steps of a few milliseconds that the host spreads over time. Only one
// goroutine may use it at a time. Nothing here decides when to run or reads a clock.
package training
