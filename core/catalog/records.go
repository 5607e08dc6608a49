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

// Extra is what a later version wrote into a record and this one does not know, in the
// protobuf wire format. It is kept as it came.
type Extra []byte

// Input is a stored picture and what is known of it.
type Input struct {
	Ord         uint32 // counts the application's inputs in the order of their creation; never used again
	Dot         log.Dot
	ID          string
	Created     log.HLC
	Modified    log.HLC // of the newest effective write
	By          string
	URL         string    // as given; empty: sent as bytes
	Blob        blob.Hash // zero until downloaded
	ContentType string
	Hosted      [16]byte // public name of the picture
	Crop        raster.Crop
	Code        int // 30001, 30000 or an error's
	Detail      string
	Labels      []Label // by concept id, removed ones among them
	Meta        Meta
	Geo         *log.Point
	GeoAt       log.Stamp
	Edits       []Edit // of predictions, by concept id
	Extra       Extra
}

// Label is a label with the stamp of its last write.
type Label struct {
	log.Label
	At log.Stamp
}

// Edit is an edit of a prediction with its stamp.
type Edit struct {
	log.OutputEdit
	At log.Stamp
}

// Concept is a concept of the application's own. It is made by ConceptCreate, or by the
// operation that first uses its id, which may make several.
type Concept struct {
	Dot      log.Dot // of that operation
	Seq      uint64  // counts the application's concepts from 1
	ID, Name string
	NameAt   log.Stamp
	Created  log.HLC
	Updated  log.HLC
	Language string
	Extra    Extra
}

// Model is a model of the application's own.
type Model struct {
	Dot      log.Dot
	Seq      uint64 // order of creation
	ID, Name string
	NameAt   log.Stamp
	Created  log.HLC
	Config   []Setting // by name
	Concepts []Member  // in the order of their first addition, removed ones among them
	Newest   string    // id of the newest version
	Extra    Extra
}

// Setting is one field of a model's output_config with its stamp.
type Setting struct {
	log.Setting
	At log.Stamp
}

// Member is whether a concept belongs to a model.
type Member struct {
	Concept string
	In      bool
	At      log.Stamp
}

// Version is one version of a model. What it was made from is its manifest's.
type Version struct {
	Model    log.Dot
	Seq      uint64 // of the operation that made it: order of creation
	ID       string
	Created  log.HLC
	Code     int // 21102, 21103, 21100 or an error's
	Detail   string
	Concepts []string  // of the model when it was made
	Config   []Setting // likewise
	Manifest blob.Hash // zero until trained
	Extra    Extra

	// Asked is the VersionTrain that a version at 21103 was asked for by, and the lease of its
	// training; zero: it is older than such leases, and Seq is its lease. It is not of the
	// record, and is read by PendingVersions and Asked alone.
	Asked log.Dot
}

// Workflow is a list of models to run together.
type Workflow struct {
	Dot     log.Dot
	Seq     uint64
	ID      string
	Created log.HLC
	Nodes   []log.WorkflowNode
	Extra   Extra
}

// Feedback is what a user said of a prediction or a search.
type Feedback struct {
	Dot            log.Dot
	Seq            uint64
	Created        log.HLC
	By             string
	Model, Version string // empty for a search's
	JSON           []byte // as it came
	Extra          Extra
}

// App is an application, in the control partition.
type App struct {
	Dot                              log.Dot
	Seq                              uint64 // place of that operation in the log
	ID, Name, Language, DefaultModel string
	Owner                            string // id of the account it belongs to; empty: the operator's
	Created                          log.HLC
	MaxStale                         uint64 // seconds that an edge takes writes after it last heard of the keys; 0: register.DefaultMaxStale
	LocalOnly                        bool   // sync sends nothing of it to edges, pages and other replicas
	Extra                            Extra
}

// Key is an API key, in the control partition.
type Key struct {
	Hash        [32]byte
	App         string
	Scopes      []string
	Description string
	By          string // id of the account that made it; empty: the operator
	Created     log.HLC
	Extra       Extra
}

// Client is what an application's tokens are issued to, in the control partition.
type Client struct {
	ID         string
	App        string
	Secret     [32]byte // SHA-256 of its text
	Generation uint64   // of its tokens: place in the log of the operation that began it
	Created    log.HLC  // when the secret was made
	Extra      Extra
}

// Counts are how many live inputs are in which state.
type Counts struct{ Processed, ToProcess, Errors uint64 }

// Derived is what analysing a picture gives: the same bytes wherever it is computed.
type Derived struct {
	Embedding []byte    // predict.EmbeddingBytes
	Values    []float32 // of the general model's concepts, in its order
	Thumb     blob.Hash // of the 320 px JPEG; zero: none
	Print     []byte    // fingerprint of that JPEG, see search.Fingerprint; empty: made by a release that had none
	Extra     Extra
}

// Meta is an input's metadata: the newest write of each path, ordered by path. A write to
// a path ends the older ones below it.
type Meta []MetaPart

// MetaPart is the value written to one path.
type MetaPart struct {
	Path    []string // member names from the root; empty: the whole document
	JSON    []byte   // as it came
	Removed bool
	At      log.Stamp
}
