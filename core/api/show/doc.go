// Package show has the forms in requests and answers that several resources share: inputs, concepts, models, outputs and operations.
// Its functions read such a thing from a body, load it from the application's data, or write it into an answer. They omit
// everything that the caller's scopes do not cover. A form that only one resource has is in the package of that resource.
package show
