// Package call is one request on its way to its answer. A [Call] has the data from the path, the credential and the body of the request,
// and its [Host] has the data that all calls share. A handler reads the body as an [Object], submits operations, and ends the call with an
// answer or with an error, whose status is a row of the table in status.go. The package does not have routes, and does not define the form
// of inputs, models and concepts in answers. Packages api and show do.
package call
