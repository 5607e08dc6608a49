package control

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
)

// kind is an error with its name on the socket.
type kind struct {
	name string
	err  error
}

// mistakes lists the errors that the caller of an operation can avoid. For the client, errors.Is matches the first error with the name.
var mistakes = []kind{
	{"unknown-app", register.ErrApplication},
	{"unknown-key", register.ErrNoKey},
	{"unknown-edge", register.ErrNoEdge},
	{"argument", ErrArgument},
	{"argument", ErrUnverified},
	{"argument", register.ErrName},
	{"argument", register.ErrDefaultModel},
	{"argument", register.ErrMaxStale},
	{"argument", auth.ErrScope},
	{"argument", lang.ErrUnknown},
}

// kinds lists all errors that the caller of an operation can distinguish.
var kinds = append(slices.Clip(mistakes),
	kind{"no-picture", blob.ErrNotFound},
	kind{"full", kv.ErrFull},
	kind{"failed", kv.ErrFailed},
)

// find returns the first of kinds that err wraps.
func find(kinds []kind, err error) (k kind, ok bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return errors.Is(err, k.err) })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// IsMistake reports whether the caller can avoid an error: the argument is invalid, or names an object that does not exist.
func IsMistake(err error) bool {
	_, is := find(mistakes, err)
	return is
}

// remoteError is an error that the process at the other end of the socket reported.
type remoteError struct {
	kind error
	text string
}

func (t *remoteError) Error() string { return t.text }
func (t *remoteError) Unwrap() error { return t.kind }

func failureOf(err error) *failure {
	k, _ := find(kinds, err)
	return &failure{Kind: k.name, Text: err.Error()}
}

func (f *failure) err() error {
	t := &remoteError{text: f.Text}
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.Kind }); i >= 0 {
		t.kind = kinds[i].err
	}
	return t
}
