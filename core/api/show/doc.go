// Package show has the shapes of requests and answers that several resources share: inputs, concepts, models, outputs and operations.
// Its functions read such a thing from a body, load it from the data of the application, or write it into an answer, and leave out
// everything that the scopes of the caller do not cover. A shape that one resource alone has is in the package of that resource.
package show
