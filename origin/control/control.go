// Package control is the operator's way into a data folder that a process has open: a socket
// in the folder, which only the folder's user can connect to.
//
//	sightline key create --data DIR
//	     │ DIR/LOCK is free: open the folder, this process alone      ─▶ Service (in process)
//	     └ it is held:       DIR/control.sock, 0600 ─▶ the holder's   ─▶ Service
//
// Whoever holds a folder's lock serves the socket, so that there is one writer at any time
// and commands work beside a running server. [Serve] offers a [Service] on a listener;
// [Client] is the same service at the other end, so a command does not know which it has.
//
// It speaks HTTP with small JSON bodies, one path an operation, and passes /v2 requests on for
// the application that a header names: who can connect is the folder's owner and needs no key.
// It is no part of /v2, takes no connection from the network, and is not for programs of others:
// both ends are the same binary.
package control

import (
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// Socket is the name of the socket in a data folder.
const Socket = "control.sock"

// ErrUnknownApp is returned for an application that the folder does not hold.
var ErrUnknownApp = errors.New("no such application")

// ErrArgument is returned for an argument that cannot be.
var ErrArgument = errors.New("bad argument")

// App is an application of a data folder.
type App struct {
	ID       string    `json:"app_id"`
	Name     string    `json:"name"`
	Language string    `json:"language"`
	Created  time.Time `json:"created_at"`
}

// Key is what may be told of an API key: never the key.
type Key struct {
	Prefix      string    `json:"hash"` // start of its SHA-256, in hex
	App         string    `json:"app_id"`
	Scopes      []string  `json:"scopes"`
	Description string    `json:"description"`
	Created     time.Time `json:"created_at"`
}

// Copied counts what a backup has copied.
type Copied struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Service is what the operator may do with a data folder. Its methods may be called concurrently.
type Service interface {
	// CreateApp makes an application and returns its id, 32 hex digits.
	CreateApp(ctx context.Context, name, language string) (id string, err error)

	// Apps returns the applications in the order of their creation.
	Apps(ctx context.Context) ([]App, error)

	// CreateKey makes a key for an application and returns it: the folder keeps its hash alone.
	// The error wraps ErrUnknownApp, or ErrArgument for a scope that there is not.
	CreateKey(ctx context.Context, app string, scopes []string, description string) (key string, err error)

	// Keys returns the keys of an application, or with an empty app all keys.
	Keys(ctx context.Context, app string) ([]Key, error)

	// Call answers a /v2 request as a key of the application with all scopes would be answered.
	// A refused request is an answer; an error says that there was none.
	Call(ctx context.Context, app string, r *api.Request) (api.Response, error)

	// Picture reads a hosted picture by its name. The error wraps blob.ErrNotFound.
	Picture(ctx context.Context, name string) (data []byte, contentType string, err error)

	// Backup copies the folder, as it is at one moment, into the new folder to, an absolute
	// path. progress is called now and then with what has been copied and what there is.
	Backup(ctx context.Context, to string, progress func(done, total Copied)) (Copied, error)

	// Checkpoint puts the store alone, as it is at one moment, into the new folder to.
	Checkpoint(ctx context.Context, to string) error
}

// The paths of the protocol.
const (
	pathApps       = "/apps"
	pathKeys       = "/keys"
	pathBackup     = "/backup"
	pathCheckpoint = "/checkpoint"
	pathPicture    = "/picture"
	headerApp      = "X-Sightline-App"
)

// The bodies of the protocol.
type (
	createApp struct {
		Name     string `json:"name"`
		Language string `json:"language"`
	}
	createdApp struct {
		ID string `json:"app_id"`
	}
	createKey struct {
		App         string   `json:"app_id"`
		Scopes      []string `json:"scopes"`
		Description string   `json:"description"`
	}
	createdKey struct {
		Key string `json:"key"`
	}
	target struct {
		To string `json:"to"`
	}
	// step is one line of the answer to a backup; the last has Done or Error.
	step struct {
		Copied Copied   `json:"copied"`
		Total  Copied   `json:"total"`
		Done   bool     `json:"done,omitempty"`
		Error  *failure `json:"error,omitempty"`
	}
	failure struct {
		Kind string `json:"kind,omitempty"` // one of kinds
		Text string `json:"text"`
	}
)
