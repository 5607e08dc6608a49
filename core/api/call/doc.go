// Package call is one request on its way to its answer: a [Call] has what the path, the credential and the body of the request say,
// and its [Host] has what all calls share. A handler reads the body as an [Object], submits operations, and ends the call with an answer
// or with an error, whose status is a row of the table in status.go. The package knows neither routes nor how an answer shows inputs,
// models and concepts: those are in packages api and show.
package call
