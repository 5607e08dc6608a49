package control

import (
	"errors"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
)

// kinds are the errors that a caller at the other end can tell apart.
var kinds = []struct {
	name string
	err  error
}{
	{"unknown-app", ErrUnknownApp},
	{"unknown-key", ErrUnknownKey},
	{"unknown-edge", ErrUnknownEdge},
	{"argument", ErrArgument},
	{"no-picture", blob.ErrNotFound},
	{"full", kv.ErrFull},
	{"failed", kv.ErrFailed},
}

// told is an error of the other end.
type told struct {
	kind error
	text string
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.kind }

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f.Kind = k.name
			break
		}
	}
	return f
}

func (f *failure) err() error {
	t := &told{text: f.Text}
	for _, k := range kinds {
		if k.name == f.Kind {
			t.kind = k.err
		}
	}
	return t
}
