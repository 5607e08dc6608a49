package catalog

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Codes of an input's and a version's status.
const (
	InputReady       = 30000
	InputPending     = 30001
	InputOverQuota   = 11006 // its picture exceeds what the account may store
	VersionTrained   = 21100
	VersionUntrained = 21102
	VersionQueued    = 21103
)

// Extra contains fields of later versions in a record, in the protobuf wire format, unchanged.
type Extra []byte

// Input is a stored picture and its data.
//
//field:message input
type Input struct {
	Ord         uint32      `wire:"1"` // counts the application's inputs in the order of their creation; never used again
	Dot         log.Dot     `wire:"2"`
	ID          string      `wire:"3"`
	Created     log.HLC     `wire:"4,fixed"`
	Modified    log.HLC     `wire:"5,fixed"` // of the newest effective write
	By          string      `wire:"6"`
	URL         string      `wire:"7"` // as given; empty: sent as bytes
	Blob        blob.Hash   `wire:"8"` // zero until downloaded
	ContentType string      `wire:"9"`
	Hosted      [16]byte    `wire:"10"` // public name of the picture
	Crop        raster.Crop `wire:"11"`
	Code        int         `wire:"12"` // 30001, 30000 or an error's
	Detail      string      `wire:"13"`
	Labels      []Label     `wire:"14"` // by concept id, removed ones among them
	Meta        Meta        `wire:"15"`
	Geo         *log.Point  `wire:"16"`
	GeoAt       log.Stamp   `wire:"17"`
	Edits       []Edit      `wire:"18"` // of predictions, by concept id
	Extra       Extra       `wire:"*"`
}

// Label is a label with the stamp of its last write.
type Label struct {
	log.Label `wire:"+0"`
	At        log.Stamp `wire:"3,or=born"`
}

// Edit is an edit of a prediction with its stamp.
type Edit struct {
	log.OutputEdit `wire:"+0"`
	At             log.Stamp `wire:"4,or=born"`
}

// Concept is a concept of the application's own. It is made by ConceptCreate, or by the
// operation that first uses its id, which may make several.
//
//field:message concept
type Concept struct {
	Dot      log.Dot   `wire:"1"` // of that operation
	Seq      uint64    `wire:"2"` // counts the application's concepts from 1
	ID       string    `wire:"3"`
	Name     string    `wire:"4"`
	NameAt   log.Stamp `wire:"5,or=born"`
	Created  log.HLC   `wire:"6,fixed"`
	Updated  log.HLC   `wire:"7,fixed"`
	Language string    `wire:"8"`
	Extra    Extra     `wire:"*"`
}

// Model is a model of the application's own.
//
//field:message model
type Model struct {
	Dot      log.Dot   `wire:"1"`
	Seq      uint64    `wire:"2"` // order of creation
	ID       string    `wire:"3"`
	Name     string    `wire:"4"`
	NameAt   log.Stamp `wire:"5,or=born"`
	Created  log.HLC   `wire:"6,fixed"`
	Config   []Setting `wire:"7"` // by name
	Concepts []Member  `wire:"8"` // in the order of their first addition, removed ones among them
	Newest   string    `wire:"9"` // id of the newest version
	Extra    Extra     `wire:"*"`
}

// Setting is one field of a model's output_config with its stamp.
type Setting struct {
	log.Setting `wire:"+0"`
	At          log.Stamp `wire:"3,or=born"`
}

// Member is whether a concept belongs to a model.
type Member struct {
	Concept string    `wire:"1"`
	In      bool      `wire:"2"`
	At      log.Stamp `wire:"3,or=born"`
}

// Version is one version of a model. Its manifest has the training data.
//
//field:message version
type Version struct {
	Model    log.Dot   `wire:"1"`
	Seq      uint64    `wire:"2"` // of the operation that made it: order of creation
	ID       string    `wire:"3"`
	Created  log.HLC   `wire:"4,fixed"`
	Code     int       `wire:"5"` // 21102, 21103, 21100 or an error's
	Detail   string    `wire:"6"`
	Concepts []string  `wire:"7"` // of the model when it was made
	Config   []Setting `wire:"8"` // likewise
	Manifest blob.Hash `wire:"9"` // zero until trained
	Extra    Extra     `wire:"*"`

	// RequestedAt is the VersionTrain that a version at 21103 was asked for by, and the lease of its
	// training; zero: it is older than such leases, and Seq is its lease. It is not of the
	// record, and is read by PendingVersions and Asked alone.
	RequestedAt log.Dot
}

// Workflow is a list of models to run together.
//
//field:message workflow
type Workflow struct {
	Dot     log.Dot            `wire:"1"`
	Seq     uint64             `wire:"2"`
	ID      string             `wire:"3"`
	Created log.HLC            `wire:"4,fixed"`
	Nodes   []log.WorkflowNode `wire:"5"`
	Extra   Extra              `wire:"*"`
}

// Feedback is a user's comment on a prediction or a search.
//
//field:message feedback
type Feedback struct {
	Dot     log.Dot `wire:"1"`
	Seq     uint64  `wire:"2"`
	Created log.HLC `wire:"3,fixed"`
	By      string  `wire:"4"`
	Model   string  `wire:"5"` // empty for a search's
	Version string  `wire:"6"` // empty for a search's
	JSON    []byte  `wire:"7"` // as it came
	Extra   Extra   `wire:"*"`
}

// App is an application, in the control partition.
//
//field:message application
type App struct {
	Dot          log.Dot `wire:"1"`
	Seq          uint64  `wire:"8"` // place of that operation in the log
	ID           string  `wire:"2"`
	Name         string  `wire:"3"`
	Language     string  `wire:"4"`
	DefaultModel string  `wire:"5"`
	Owner        string  `wire:"7"` // id of the account it belongs to; empty: the operator's
	Created      log.HLC `wire:"6,fixed"`
	MaxStale     uint64  `wire:"9"`  // seconds that an edge takes writes after it last heard of the keys; 0: register.DefaultMaxStale
	LocalOnly    bool    `wire:"10"` // sync sends nothing of it to edges, pages and other replicas
	Extra        Extra   `wire:"*"`
}

// Key is an API key, in the control partition.
//
//field:message key
type Key struct {
	Hash        [32]byte `wire:"1"`
	App         string   `wire:"2"`
	Scopes      []string `wire:"3"`
	Description string   `wire:"4"`
	By          string   `wire:"6"` // id of the account that made it; empty: the operator
	Created     log.HLC  `wire:"5,fixed"`
	Extra       Extra    `wire:"*"`
}

// Client is the client to which an application's tokens are issued, in the control partition.
//
//field:message client
type Client struct {
	ID         string   `wire:"1"`
	App        string   `wire:"2"`
	Secret     [32]byte `wire:"3"`       // SHA-256 of its text
	Generation uint64   `wire:"4"`       // of its tokens: place in the log of the operation that began it
	Created    log.HLC  `wire:"5,fixed"` // when the secret was made
	Extra      Extra    `wire:"*"`
}

// Counts are the numbers of live inputs by state.
type Counts struct {
	Processed uint64 `wire:"1"`
	ToProcess uint64 `wire:"2"`
	Errors    uint64 `wire:"3"`
}

// DerivedData is the result of analysing a picture: the same bytes on every host.
//
//field:message derived record
type DerivedData struct {
	Embedding []byte    `wire:"1"`             // predict.EmbeddingBytes
	Values    []float32 `wire:"2,func=Floats"` // of the general model's concepts, in its order
	Thumb     blob.Hash `wire:"3"`             // of the 320 px JPEG; zero: none
	Print     []byte    `wire:"4"`             // fingerprint of that JPEG, see search.Fingerprint; empty: made by a release that had none
	Extra     Extra     `wire:"*"`
}

// Meta is an input's metadata: the newest write of each path, ordered by path. A write to
// a path ends the older ones below it.
type Meta []MetaPart

// MetaPart is the value written to one path.
type MetaPart struct {
	Path    []string  `wire:"1"` // member names from the root; empty: the whole document
	JSON    []byte    `wire:"2"` // as it came
	Removed bool      `wire:"3"`
	At      log.Stamp `wire:"4,or=born"`
}
