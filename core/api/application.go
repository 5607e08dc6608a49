package api

import (
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/partition"
)

// Application is an application as requests meet it. Everything a request reads or writes
// is of the application that its credential belongs to.
type Application struct {
	ID           string // 32 hex digits
	Language     string // the default for names; fixed at creation
	DefaultModel string // what pages preselect; changes no answer
	Partition    *partition.Partition
}

// Applications says for which application a request speaks. The errors are package auth's.
type Applications interface {
	Authorize(authorization string) (*Application, auth.Principal, error)
	// Owner is the application's owner, for whom the host vouches.
	Owner(app string) (*Application, auth.Principal, error)
}
