// Package control gives the operator access to a data folder that another process has open. It uses a socket in the folder. Only the
// folder's user can connect to it.
//
//	key create --data DIR
//	     │ DIR/LOCK is free: open the folder, this process alone      ─▶ Folder (in process)
//	     └ it is held:       DIR/control.sock, 0600 ─▶ the holder's   ─▶ Folder
//
// The process that holds a folder's lock serves the socket. So at any time there is one writer, and commands work while a server runs. A
// [Server] offers a [Folder] on a listener. A [Caller] is the same folder at the other end, so a command works with either.
//
// The protocol is HTTP with small JSON bodies, one path for each [Op]. It also passes on /v2 requests for the application in a header. The
// client needs no key, because only the folder's owner can connect. The protocol is separate from /v2, accepts no connection from the
// network, and is not for other programs: both ends are the same binary.
package control

import (
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/register"
)

// Socket is the name of the socket in a data folder.
const Socket = "control.sock"

// ErrArgument is returned for an invalid argument that package register does not know.
var ErrArgument = errors.New("invalid argument")

// ErrUnverified is returned for a new edge of an application whose account has no verified email address.
var ErrUnverified = errors.New("its account must verify its email address before it can have an edge")

// App is an application of a data folder.
type App struct {
	ID           string    `json:"app_id"`
	Name         string    `json:"name"`
	Language     string    `json:"language"`
	DefaultModel string    `json:"default_model"`   // empty: the general model
	Owner        string    `json:"owner,omitempty"` // id of an account; empty: the operator
	Client       string    `json:"client_id"`
	Created      time.Time `json:"created_at"`
	MaxStale     string    `json:"max_stale,omitempty"`  // time of writes at edges without the origin, such as "48h0m0s"; empty: 24 hours
	LocalOnly    bool      `json:"local_only,omitempty"` // sync sends none of its data to edges, pages and other replicas
}

// Key is the public part of an API key's record, without the key.
type Key struct {
	ID          string    `json:"key_id"` // start of its SHA-256: 16 hex digits
	App         string    `json:"app_id"`
	Scopes      []string  `json:"scopes"`
	Description string    `json:"description"`
	By          string    `json:"made_by,omitempty"` // id of an account; empty: the operator
	Created     time.Time `json:"created_at"`
}

// Edge is a node that replicates applications.
type Edge struct {
	ID       string    `json:"edge_id"`
	Name     string    `json:"name"`
	Apps     []string  `json:"app_ids"`
	Site     uint32    `json:"site,omitempty"` // number under which it writes; 0: it has not enrolled yet
	Created  time.Time `json:"created_at"`
	Enrolled time.Time `json:"enrolled_at,omitzero"`
	Revoked  time.Time `json:"revoked_at,omitzero"`
}

// NewEdge describes an edge to create.
type NewEdge struct {
	Name string   `json:"name"`
	Apps []string `json:"app_ids"`
}

// BackupStats counts what a backup has copied.
type BackupStats struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Status is the status of the process that has the folder open.
type Status struct {
	Program   string          `json:"program"`
	Version   string          `json:"version"`
	Since     time.Time       `json:"since"`
	URL       string          `json:"url,omitempty"`     // URL of its server; empty: it does not serve
	Refuses   string          `json:"refuses,omitempty"` // why it accepts no writes; empty: it accepts them
	Apps      int             `json:"apps"`              // number of applications
	Calls     int64           `json:"calls"`             // calls in progress
	Pictures  int64           `json:"pictures"`          // pictures being fetched, waiting or being analysed
	Analysed  int64           `json:"pictures_total"`    // pictures analysed since the start
	Missing   uint64          `json:"pictures_missing"`  // inputs that cannot be analysed because the store lacks their pictures
	DiskBytes int64           `json:"store_disk_bytes"`  // disk space of the store
	FreeBytes int64           `json:"disk_free_bytes"`   // free space on the folder's disk
	Module    *Module         `json:"module,omitempty"`  // nil: the core runs natively
	Replicas  []ReplicaStatus `json:"copies,omitempty"`  // applications that replicate an origin's
}

// ReplicaStatus is the status of an application that replicates an origin's application.
type ReplicaStatus struct {
	App       string    `json:"app"`
	Origin    string    `json:"origin"`
	Phase     string    `json:"phase"`             // "current", "pulling", "unreachable", …
	Cursor    uint64    `json:"cursor"`            // last pulled entry of the origin's log
	Head      uint64    `json:"head"`              // last known entry of the origin's log
	Pending   uint64    `json:"pending"`           // local writes that are not known to be in the origin's log
	Contact   time.Time `json:"contact,omitzero"`  // last answer of the origin since the start; zero: none
	AsOf      time.Time `json:"as_of,omitzero"`    // last time when the origin had no later entries; zero: never
	Conflicts uint64    `json:"conflicts"`         // local writes since the start that had no effect
	KeysAge   int64     `json:"keys_age_seconds"`  // time since the origin last sent the keys
	Admits    string    `json:"admits,omitempty"`  // access left because of the age of the keys: "reads" or "nothing"; empty: all
	Problem   string    `json:"problem,omitempty"` // why sync does not work; empty: it does
}

// Module is the WebAssembly module that answers requests.
type Module struct {
	SHA256    string `json:"sha256"`
	Compiled  bool   `json:"compiled"` // compiled at this start, not read from the cache
	Instances int    `json:"instances"`
	Bytes     int64  `json:"memory_bytes"` // memory of all instances
}

// Folder runs operations on a data folder. It is safe for concurrent use.
type Folder interface {
	// Do runs the operation name. in points to its argument, and out to its result. IsMistake recognises the errors that the caller can
	// avoid.
	Do(ctx context.Context, name string, in, out any) error

	// Call answers a /v2 request with the rights of a key of app that has all scopes. A refused request is an answer. An error means that
	// no answer came.
	Call(ctx context.Context, app string, r *api.Request) (api.Response, error)

	// Picture returns the hosted picture with the given name. The error wraps blob.ErrNotFound.
	Picture(ctx context.Context, name string) (data []byte, contentType string, err error)

	// Backup copies the folder's state at one moment into the new folder to, an absolute path. From time to time it calls progress with the
	// copied amount and the total.
	Backup(ctx context.Context, to string, progress func(done, total BackupStats)) (BackupStats, error)
}

// Op is the name of an operation on a data folder, with the types of its argument and its result.
type Op[In, Out any] string

// Do runs the operation on f.
func (o Op[In, Out]) Do(ctx context.Context, f Folder, in In) (out Out, err error) {
	err = f.Do(ctx, string(o), &in, &out)
	return out, err
}

// The operations.
const (
	CreateApp     Op[register.NewApp, CreatedApp] = "app.create" // only this answer contains the client's secret
	Apps          Op[Nothing, []App]              = "app.list"   // in the order of creation
	ChangeApp     Op[ChangedApp, App]             = "app.change"
	CountApp      Op[ID, register.Contents]       = "app.contents"
	DeleteApp     Op[ID, Nothing]                 = "app.delete"    // its data is removed by then or shortly afterwards
	ReplaceSecret Op[ID, register.Client]         = "client.secret" // of an application; revokes its tokens
	RevokeTokens  Op[ID, Nothing]                 = "tokens.revoke" // of an application
	CreateKey     Op[register.NewKey, CreatedKey] = "key.create"    // the folder stores only the key's hash
	Keys          Op[ID, []Key]                   = "key.list"      // of an application, or all if the ID is empty
	DeleteKey     Op[ID, Nothing]                 = "key.delete"
	ReplaceKey    Op[ID, CreatedKey]              = "key.replace"
	CreateEdge    Op[NewEdge, CreatedEdge]        = "edge.create" // the folder stores only the token's hash
	Edges         Op[Nothing, []Edge]             = "edge.list"   // in the order of creation, including revoked edges
	RevokeEdge    Op[ID, Edge]                    = "edge.revoke"
	ExportHead    Op[HeadID, Head]                = "head.export"
	ImportHead    Op[NewHead, ID]                 = "head.import"      // creates a version and returns its ID
	Checkpoint    Op[Target, Nothing]             = "store.checkpoint" // copies the store alone, at one moment, into a new folder
	ShowStatus    Op[Nothing, Status]             = "status"
)

// Arguments and results of operations.
type (
	// Nothing is an empty argument or result.
	Nothing struct{}

	// ID is the id of an application, a key or an edge.
	ID struct {
		ID string `json:"id"`
	}

	// HeadID names the head of a model's version.
	HeadID struct {
		App     string `json:"app_id"`
		Model   string `json:"model_id"`
		Version string `json:"version_id"` // empty: the newest trained version
	}

	// NewHead is a head to import into an application's model. The head names the model.
	NewHead struct {
		App  string `json:"app_id"`
		Head Head   `json:"head"`
	}

	// Target is the absolute path of a new folder, which must not exist.
	Target struct {
		To string `json:"to"`
	}

	// CreatedApp is an application with its client.
	CreatedApp struct {
		App    App             `json:"app"`
		Client register.Client `json:"client"`
	}

	// ChangedApp is a change to an application.
	ChangedApp struct {
		ID     string             `json:"id"`
		Change register.AppChange `json:"change"`
	}

	// CreatedKey is a new key. Only this answer contains the key itself.
	CreatedKey struct {
		Key    string `json:"key"`
		Record Key    `json:"record"`
	}

	// CreatedEdge is a new edge with its enrolment token. Only this answer contains the token.
	CreatedEdge struct {
		Token  string `json:"token"`
		Record Edge   `json:"record"`
	}
)

// Table holds the implementations of operations by name. T is the type of an open folder.
type Table[T any] map[string]row[T]

// row is the implementation of an operation in a [Table].
type row[T any] struct {
	in func() any // returns a new pointer to its argument
	do func(ctx context.Context, of T, in, out any) error
	to func() any // returns a new pointer to its result
}

// Add adds operation o to table t. do implements it.
func Add[T, In, Out any](t Table[T], o Op[In, Out], do func(ctx context.Context, of T, in In) (Out, error)) {
	t[string(o)] = row[T]{
		in: func() any { return new(In) },
		to: func() any { return new(Out) },
		do: func(ctx context.Context, of T, in, out any) (err error) {
			*out.(*Out), err = do(ctx, of, *in.(*In))
			return err
		},
	}
}

// Do runs the operation name on the folder of. It panics if the table has no such operation.
func (t Table[T]) Do(ctx context.Context, of T, name string, in, out any) error {
	return t[name].do(ctx, of, in, out)
}

// New returns new pointers to the argument and the result of an operation. ok is false if the table has no operation with the name.
func (t Table[T]) New(name string) (in, out any, ok bool) {
	r, ok := t[name]
	if !ok {
		return nil, nil, false
	}
	return r.in(), r.to(), true
}

// Paths of the protocol that are not names of operations, and its header.
const (
	pathBackup  = "/backup"
	pathPicture = "/picture"
	headerApp   = "X-Sightline-App"
)

// Bodies of a backup's answer and of an error.
type (
	// step is one line of the answer to a backup. The last line has Done or Error.
	step struct {
		Copied BackupStats `json:"copied"`
		Total  BackupStats `json:"total"`
		Done   bool        `json:"done,omitempty"`
		Error  *failure    `json:"error,omitempty"`
	}
	failure struct {
		Kind string `json:"kind,omitempty"` // one of kinds
		Text string `json:"text"`
	}
)
