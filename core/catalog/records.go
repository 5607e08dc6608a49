package catalog

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// Status codes of inputs and versions.
const (
	InputReady       = 30000
	InputPending     = 30001
	InputUnsupported = 30101 // its file has no known format
	InputTooLarge    = 30105 // its file or its picture exceeds the limits of its format
	InputUnreadable  = 30300 // its picture could not be decoded
	InputOverQuota   = 11006 // its picture exceeds the storage limit of the account
	VersionTrained   = 21100
	VersionUntrained = 21102
	VersionQueued    = 21103
)

// Extra contains the fields of a record that this version of the program does not know, in the protobuf wire format, unchanged.
type Extra []byte

// Input is a stored picture and its data.
//
//field:message input
type Input struct {
	Ord         uint32      `wire:"1"` // number of the input in the order of creation in its application; never used again
	Dot         log.Dot     `wire:"2"`
	ID          string      `wire:"3"`
	Created     log.HLC     `wire:"4,fixed"`
	Modified    log.HLC     `wire:"5,fixed"` // time of the newest effective write
	By          string      `wire:"6"`
	URL         string      `wire:"7"` // as given; empty if the client sent bytes
	Blob        blob.Hash   `wire:"8"` // zero until downloaded
	ContentType string      `wire:"9"`
	Hosted      [16]byte    `wire:"10"` // public name of the picture
	Crop        raster.Crop `wire:"11"`
	Code        int         `wire:"12"` // 30001, 30000 or the code of an error
	Detail      string      `wire:"13"`
	Labels      []Label     `wire:"14"` // by concept id, including removed labels
	Meta        Meta        `wire:"15"`
	Geo         *log.Point  `wire:"16"`
	GeoAt       log.Stamp   `wire:"17"`
	Edits       []Edit      `wire:"18"`       // edits of predictions, by concept id
	ReadEXIF    bool        `wire:"19"`       // see log.InputCreate
	Made        log.HLC     `wire:"20,fixed"` // see log.Op; 0: Created
	Extra       Extra       `wire:"*"`
}

// IsUnreadable reports whether the input ended because the program could not read the file at its URL. A later version of the program may
// be able to.
func (in *Input) IsUnreadable() bool {
	return in.Code == InputUnsupported || in.Code == InputTooLarge || in.Code == InputUnreadable
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

// Concept is a custom concept of an application. ConceptCreate creates it, or the first operation that uses its id. Such an
// operation may create several concepts.
//
//field:message concept
type Concept struct {
	Dot      log.Dot   `wire:"1"` // dot of the operation that created it
	Seq      uint64    `wire:"2"` // number of the concept in its application, starting at 1
	ID       string    `wire:"3"`
	Name     string    `wire:"4"`
	NameAt   log.Stamp `wire:"5,or=born"`
	Created  log.HLC   `wire:"6,fixed"`
	Updated  log.HLC   `wire:"7,fixed"`
	Language string    `wire:"8"`
	Extra    Extra     `wire:"*"`
}

// Model is a custom model of an application.
//
//field:message model
type Model struct {
	Dot      log.Dot   `wire:"1"`
	Seq      uint64    `wire:"2"` // order of creation
	ID       string    `wire:"3"`
	Name     string    `wire:"4"`
	NameAt   log.Stamp `wire:"5,or=born"`
	Created  log.HLC   `wire:"6,fixed"`
	Config   []Setting `wire:"7"`        // by name
	Concepts []Member  `wire:"8"`        // in the order of their first addition, including removed concepts
	Newest   string    `wire:"9"`        // id of the newest version
	Made     log.HLC   `wire:"10,fixed"` // see log.Op; 0: Created
	Extra    Extra     `wire:"*"`
}

// Setting is one field of a model's output_config with its stamp.
type Setting struct {
	log.Setting `wire:"+0"`
	At          log.Stamp `wire:"3,or=born"`
}

// Member records whether a concept belongs to a model.
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
	Seq      uint64    `wire:"2"` // log position of the operation that created it: order of creation
	ID       string    `wire:"3"`
	Created  log.HLC   `wire:"4,fixed"`
	Code     int       `wire:"5"` // 21102, 21103, 21100 or the code of an error
	Detail   string    `wire:"6"`
	Concepts []string  `wire:"7"` // concepts of the model when the version was created
	Config   []Setting `wire:"8"` // settings of the model when the version was created
	Manifest blob.Hash `wire:"9"` // zero until trained
	Extra    Extra     `wire:"*"`

	// RequestedAt is the dot of the VersionTrain that requested the training of a version at 21103. It is also
	// the lease of the training; if it is zero, the request is older than such leases, and Seq is the lease.
	// It is not part of the record. The fold and PendingVersions set it.
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
	Made    log.HLC            `wire:"6,fixed"` // see log.Op; 0: Created
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
	Model   string  `wire:"5"` // empty for feedback on a search
	Version string  `wire:"6"` // empty for feedback on a search
	JSON    []byte  `wire:"7"` // as the client sent it
	Extra   Extra   `wire:"*"`
}

// App is an application, in the control partition.
//
//field:message application
type App struct {
	Dot          log.Dot `wire:"1"`
	Seq          uint64  `wire:"8"` // log position of the operation that created it
	ID           string  `wire:"2"`
	Name         string  `wire:"3"`
	Language     string  `wire:"4"`
	DefaultModel string  `wire:"5"`
	Owner        string  `wire:"7"` // id of the owner's account; empty if the operator owns it
	Created      log.HLC `wire:"6,fixed"`
	MaxStale     uint64  `wire:"9"`  // seconds that an edge accepts writes after it last confirmed the keys; 0: register.DefaultMaxStale
	LocalOnly    bool    `wire:"10"` // sync sends none of its data to edges, pages and other replicas
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
	By          string   `wire:"6"` // id of the account that created it; empty if the operator did
	Created     log.HLC  `wire:"5,fixed"`
	Extra       Extra    `wire:"*"`
}

// Client is the holder of the id and secret for which an application's tokens are issued, in the control partition.
//
//field:message client
type Client struct {
	ID         string   `wire:"1"`
	App        string   `wire:"2"`
	Secret     [32]byte `wire:"3"`       // SHA-256 of the secret's text
	Generation uint64   `wire:"4"`       // generation of its tokens: log position of the operation that began it
	Created    log.HLC  `wire:"5,fixed"` // time at which the secret was created
	Extra      Extra    `wire:"*"`
}

// Counts are the numbers of live inputs by state.
type Counts struct {
	Processed uint64 `wire:"1"`
	ToProcess uint64 `wire:"2"`
	Errors    uint64 `wire:"3"`
}

// DerivedData is the result of analysing a picture. Its bytes are the same on every host.
//
//field:message derived record
type DerivedData struct {
	Embedding   []byte    `wire:"1"`             // predict.EmbeddingBytes
	Values      []float32 `wire:"2,func=Floats"` // values of the general model's concepts, in the model's order
	Thumb       blob.Hash `wire:"3"`             // hash of the 320 px JPEG; zero if there is no thumbnail
	Fingerprint []byte    `wire:"4"`             // fingerprint of that JPEG, see search.Fingerprint; empty in records of older releases
	Read        uint32    `wire:"5"`             // exif.Version that has read Taken; 0 in records of older releases
	Taken       exif.Time `wire:"6"`             // time that the picture's file has
	Extra       Extra     `wire:"*"`
}

// Meta is an input's metadata: the newest write of each path, ordered by path. A write to
// a path replaces older writes to paths below it.
type Meta []MetaPart

// MetaPart is the value written to one path.
type MetaPart struct {
	Path    []string  `wire:"1"` // member names from the root; empty: the whole document
	JSON    []byte    `wire:"2"` // as the client sent it
	Removed bool      `wire:"3"`
	At      log.Stamp `wire:"4,or=born"`
}
