// Package control gives the operator access to a data folder that a process has open: a socket in the folder, which only the folder's
// user can connect to.
//
//	key create --data DIR
//	     │ DIR/LOCK is free: open the folder, this process alone      ─▶ Folder (in process)
//	     └ it is held:       DIR/control.sock, 0600 ─▶ the holder's   ─▶ Folder
//
// The process that holds a folder's lock serves the socket. So there is one writer at any time, and commands work while a server runs. A
// [Server] offers a [Folder] on a listener; a [Caller] is the same folder at the other end, so a command does not know which it has.
//
// The protocol is HTTP with small JSON bodies, one path for each [Op]. It passes /v2 requests on for the application that a header names:
// anyone who can connect is the folder's owner and needs no key. It is separate from /v2, accepts no connection from the network, and is
// not for other programs: both ends are the same binary.
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

// ErrUnverified is returned for an edge of an application whose account has no verified address.
var ErrUnverified = errors.New("its account must verify its email address before it can have an edge")

// App is an application of a data folder.
type App struct {
	ID           string    `json:"app_id"`
	Name         string    `json:"name"`
	Language     string    `json:"language"`
	DefaultModel string    `json:"default_model"`   // empty: the general one
	Owner        string    `json:"owner,omitempty"` // id of an account; empty: the operator's
	Client       string    `json:"client_id"`
	Created      time.Time `json:"created_at"`
	MaxStale     string    `json:"max_stale,omitempty"`  // time for which edges take writes alone, such as "48h0m0s"; empty: 24 hours
	LocalOnly    bool      `json:"local_only,omitempty"` // sync sends nothing of it to edges, pages and other replicas
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

// Edge is a node that holds copies of applications.
type Edge struct {
	ID       string    `json:"edge_id"`
	Name     string    `json:"name"`
	Apps     []string  `json:"app_ids"`
	Site     uint32    `json:"site,omitempty"` // number that it writes under; 0: it has not enrolled yet
	Created  time.Time `json:"created_at"`
	Enrolled time.Time `json:"enrolled_at,omitzero"`
	Revoked  time.Time `json:"revoked_at,omitzero"`
}

// NewEdge is an edge to be made.
type NewEdge struct {
	Name string   `json:"name"`
	Apps []string `json:"app_ids"`
}

// BackupStats counts what a backup has copied.
type BackupStats struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Status is how the process is that has the folder open.
type Status struct {
	Program   string          `json:"program"`
	Version   string          `json:"version"`
	Since     time.Time       `json:"since"`
	URL       string          `json:"url,omitempty"`     // where it serves; empty: it does not
	Refuses   string          `json:"refuses,omitempty"` // why it takes no writes
	Apps      int             `json:"apps"`              // applications
	Calls     int64           `json:"calls"`             // under way
	Pictures  int64           `json:"pictures"`          // fetched, waiting or analysed now
	Analysed  int64           `json:"pictures_total"`    // since the start
	Missing   uint64          `json:"pictures_missing"`  // inputs that cannot be analysed because the store lacks their pictures
	DiskBytes int64           `json:"store_disk_bytes"`  // of the store
	FreeBytes int64           `json:"disk_free_bytes"`   // of the folder's disk
	Module    *Module         `json:"module,omitempty"`  // nil: the core runs natively
	Replicas  []ReplicaStatus `json:"copies,omitempty"`  // of an origin's applications
}

// ReplicaStatus is the status of an application that is a copy of an origin's.
type ReplicaStatus struct {
	App       string    `json:"app"`
	Origin    string    `json:"origin"`
	Phase     string    `json:"phase"`             // "current", "pulling", "unreachable", …
	Cursor    uint64    `json:"cursor"`            // last pulled entry of the origin's log
	Head      uint64    `json:"head"`              // last one that is known of
	Pending   uint64    `json:"pending"`           // own writes that the origin's log is not known to have
	Contact   time.Time `json:"contact,omitzero"`  // when the origin last answered since the start; zero: it has not
	AsOf      time.Time `json:"as_of,omitzero"`    // when it last had no later entries; zero: not yet
	Conflicts uint64    `json:"conflicts"`         // own writes since the start that came to nothing
	KeysAge   int64     `json:"keys_age_seconds"`  // since the origin last sent the keys
	Admits    string    `json:"admits,omitempty"`  // with keys so old: "reads" alone or "nothing"; empty: all
	Problem   string    `json:"problem,omitempty"` // what keeps them apart
	Renewed   string    `json:"renewed,omitempty"` // that and when an older copy of its data was found restored
}

// Module is the module that answers.
type Module struct {
	SHA256    string `json:"sha256"`
	Compiled  bool   `json:"compiled"` // at this start, and not read from the cache
	Instances int    `json:"instances"`
	Bytes     int64  `json:"memory_bytes"` // of all instances
}

// Folder is a data folder that operations are done on. Its methods may be called concurrently.
type Folder interface {
	// Do does the operation of a name. in points at its argument, and out at its result. IsMistake recognises the errors that the
	// caller can avoid.
	Do(ctx context.Context, name string, in, out any) error

	// Call answers a /v2 request as a key of the application with all scopes would be answered.
	// A refused request is an answer; an error says that there was none.
	Call(ctx context.Context, app string, r *api.Request) (api.Response, error)

	// Picture reads a hosted picture by its name. The error wraps blob.ErrNotFound.
	Picture(ctx context.Context, name string) (data []byte, contentType string, err error)

	// Backup copies the folder, as it is at one moment, into the new folder to, an absolute path. It calls progress from time to time
	// with the copied amount and the total.
	Backup(ctx context.Context, to string, progress func(done, total BackupStats)) (BackupStats, error)
}

// Op is an operation on a data folder: its name on the socket, with the types of its argument and its result.
type Op[In, Out any] string

// Do does the operation.
func (o Op[In, Out]) Do(ctx context.Context, f Folder, in In) (out Out, err error) {
	err = f.Do(ctx, string(o), &in, &out)
	return out, err
}

// The operations.
const (
	CreateApp     Op[register.NewApp, CreatedApp] = "app.create" // the client's secret is in this answer only
	Apps          Op[Nothing, []App]              = "app.list"   // in the order of their creation
	ChangeApp     Op[ChangedApp, App]             = "app.change"
	CountApp      Op[ID, register.Contents]       = "app.contents"
	DeleteApp     Op[ID, Nothing]                 = "app.delete"    // what it holds is removed by then or a little later
	ReplaceSecret Op[ID, register.Client]         = "client.secret" // of an application: it ends the tokens
	RevokeTokens  Op[ID, Nothing]                 = "tokens.revoke" // of an application
	CreateKey     Op[register.NewKey, CreatedKey] = "key.create"    // the folder keeps the key's hash alone
	Keys          Op[ID, []Key]                   = "key.list"      // of an application; of an empty ID: all
	DeleteKey     Op[ID, Nothing]                 = "key.delete"
	ReplaceKey    Op[ID, CreatedKey]              = "key.replace"
	CreateEdge    Op[NewEdge, CreatedEdge]        = "edge.create" // the folder keeps the token's hash alone
	Edges         Op[Nothing, []Edge]             = "edge.list"   // in the order of their creation, revoked ones among them
	RevokeEdge    Op[ID, Edge]                    = "edge.revoke"
	ExportHead    Op[HeadID, Head]                = "head.export"
	ImportHead    Op[NewHead, ID]                 = "head.import"      // makes a version, whose ID it returns
	Checkpoint    Op[Target, Nothing]             = "store.checkpoint" // puts the store alone, as it is at one moment, into a new folder
	ShowStatus    Op[Nothing, Status]             = "status"
)

// Arguments and results of operations.
type (
	// Nothing is taken or given.
	Nothing struct{}

	// ID is that of an application, a key or an edge.
	ID struct {
		ID string `json:"id"`
	}

	// HeadID names the head of a model's version.
	HeadID struct {
		App     string `json:"app_id"`
		Model   string `json:"model_id"`
		Version string `json:"version_id"` // empty: the newest trained one
	}

	// NewHead is a head to be imported into an application's model, which the head names.
	NewHead struct {
		App  string `json:"app_id"`
		Head Head   `json:"head"`
	}

	// Target is an absolute path of a folder that does not exist yet.
	Target struct {
		To string `json:"to"`
	}

	// CreatedApp is an application with its client.
	CreatedApp struct {
		App    App             `json:"app"`
		Client register.Client `json:"client"`
	}

	// ChangedApp is a change of an application.
	ChangedApp struct {
		ID     string             `json:"id"`
		Change register.AppChange `json:"change"`
	}

	// CreatedKey is a new key, which only this answer contains.
	CreatedKey struct {
		Key    string `json:"key"`
		Record Key    `json:"record"`
	}

	// CreatedEdge is a new edge with the token of its enrolment, which only this answer contains.
	CreatedEdge struct {
		Token  string `json:"token"`
		Record Edge   `json:"record"`
	}
)

// Table has the operations of folders that T has open, by name.
type Table[T any] map[string]row[T]

// row is an operation of a [Table].
type row[T any] struct {
	in func() any // makes a pointer to its argument
	do func(ctx context.Context, of T, in, out any) error
	to func() any // makes a pointer to its result
}

// Add adds an operation to a table.
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

// Do does an operation of the table.
func (t Table[T]) Do(ctx context.Context, of T, name string, in, out any) error {
	return t[name].do(ctx, of, in, out)
}

// New makes pointers to the argument and the result of an operation; false: there is none with the name.
func (t Table[T]) New(name string) (in, out any, ok bool) {
	r, ok := t[name]
	if !ok {
		return nil, nil, false
	}
	return r.in(), r.to(), true
}

// The paths of the protocol besides those of operations, which are their names.
const (
	pathBackup  = "/backup"
	pathPicture = "/picture"
	headerApp   = "X-Sightline-App"
)

// The bodies of a backup's answer and of an error.
type (
	// step is one line of the answer to a backup; the last has Done or Error.
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
