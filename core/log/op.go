package log

import (
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Site is a writer: an origin node, an edge, a browser's profile. Its number is leased.
type Site uint32

// Origin is the site of a server that has its own log.
const Origin Site = 1

// Dot names an operation for ever: the site that issued it and its place among that
// site's operations, which count from 1 without gaps. The thing an operation creates is
// named by its dot; a later thing with the same id has another.
type Dot struct {
	Site Site   `wire:"1"`
	Seq  uint64 `wire:"2"`
}

// HLC is a hybrid logical clock: milliseconds since 1970 in the upper 48 bits, a counter
// in the lower 16.
type HLC uint64

// Time is the wall time of h, in UTC and whole milliseconds.
func (h HLC) Time() time.Time { return time.UnixMilli(int64(h >> 16)).UTC() }

// Stamp orders the writes of one register: by clock, then by site.
type Stamp struct {
	At   HLC  `wire:"1,fixed"`
	Site Site `wire:"2"`
}

// Less reports whether s is older than o.
func (s Stamp) Less(o Stamp) bool { return s.At < o.At || s.At == o.At && s.Site < o.Site }

// Stamp is the stamp of what the operation writes.
func (o *Op) Stamp() Stamp { return Stamp{At: o.At, Site: o.Dot.Site} }

// Op is one operation: one write of one site.
type Op struct {
	Dot   Dot
	At    HLC
	By    string // id of the key or account that asked for it; empty for our own
	Body  Body
	Extra Extra
}

// Extra is what a later version wrote into an operation and this one does not know, in the
// protobuf wire format. It is kept, and sent on, as it came.
type Extra struct{ Op, Body []byte }

// Entry is an operation at its place in a log. Seq counts from 1.
type Entry struct {
	Seq uint64
	Op  Op
}

// Body is what an operation does: one of the types below, by pointer.
type Body interface{ kind() Kind }

// Unknown is the body of an operation of a later version. It is kept, and does nothing.
type Unknown struct {
	Kind Kind
	Data []byte
}

// Value is what a label says about a concept.
type Value uint8

// A removed label is a value like the others until the horizon passes it.
const (
	Removed Value = iota
	False
	True
)

// Label says whether a concept is in a picture.
type Label struct {
	Concept string `wire:"1"`
	Value   Value  `wire:"2,max=True"`
}

// Point is a place on earth, in degrees.
type Point struct {
	Longitude float64 `wire:"1"`
	Latitude  float64 `wire:"2"`
}

// Operations on inputs.
type (
	// InputCreate makes an input. With Blob it is at 30000, and its derived record was
	// written before it; without, it is at 30001 until InputFetched.
	InputCreate struct {
		ID             string
		URL            string // as given; empty for a picture sent as bytes
		AllowDuplicate bool   // of URL
		MergeIfEqual   bool   // an input with this id, blob, crop and URL takes in the labels instead
		Blob           blob.Hash
		ContentType    string   // such as "image/jpeg", with Blob
		Hosted         [16]byte // public name of the picture, random
		Crop           raster.Crop
		Labels         []Label
		Meta           []byte // JSON as it came; nil: none
		Geo            *Point
	}
	// InputFetched ends the download of an input's picture: 30000 with Blob, or an error's
	// code with Detail.
	InputFetched struct {
		Input       Dot
		Code        int
		Detail      string
		Blob        blob.Hash
		ContentType string
	}
	// InputLabels sets labels.
	InputLabels struct {
		Input  Dot
		Labels []Label
	}
	// InputMeta writes parts of an input's metadata.
	InputMeta struct {
		Input  Dot
		Writes []MetaWrite
	}
	// InputGeo sets an input's place; nil removes it.
	InputGeo struct {
		Input Dot
		Geo   *Point
	}
	// InputDelete deletes one input for ever.
	InputDelete struct{ Input Dot }
	// InputDeleteAll deletes every input created before it.
	InputDeleteAll struct{ Barrier bool }
	// OutputsPatch edits the stored predictions of an input.
	OutputsPatch struct {
		Input Dot
		Edits []OutputEdit
	}
)

// MetaWrite is a write to one path of a metadata document.
type MetaWrite struct {
	Path   []string // member names from the root; empty: the whole document
	Action MetaAction
	JSON   []byte // the value as it came, or the elements to append as an array; nil with MetaRemove
}

// MetaAction is what a MetaWrite does.
type MetaAction uint8

// What may be done at a path.
const (
	MetaSet MetaAction = iota
	MetaRemove
	MetaAppend
)

// OutputEdit sets, or removes, the stored value of a predicted concept.
type OutputEdit struct {
	Concept string
	Value   float32 // 0…1
	Removed bool
}

// Operations on concepts and models.
type (
	// ConceptCreate makes a concept of the application's own.
	ConceptCreate struct{ ID, Name, Language string }
	// ConceptName renames it. A concept is never deleted, so its id names it for ever.
	ConceptName struct{ ID, Name string }
	// ModelCreate makes a model and its first version, at 21102.
	ModelCreate struct {
		ID, Name string
		Version  string // id of the first version
		Concepts []string
		Config   []Setting
	}
	// ModelPatch changes a model. A change of concepts makes another version at 21102.
	ModelPatch struct {
		Model   Dot
		Name    *string // nil: as it is
		Config  []Setting
		Add     []string
		Remove  []string
		Version string // id of the version that a change of concepts makes; empty: none
	}
	// ModelDelete deletes a model and its versions for ever.
	ModelDelete struct{ Model Dot }
	// ModelDeleteAll deletes every model created before it.
	ModelDeleteAll struct{}
	// VersionTrain asks for another version of a model, at 21103.
	VersionTrain struct {
		Model   Dot
		Version string // its id
	}
	// VersionResult ends a training: 21100 with its manifest, or an error's code. It holds the
	// lease of the VersionTrain that it answers: names its operation, whose place in the log a
	// site that trains before it has been there does not know; or, in older logs, its place.
	VersionResult struct {
		Model    Dot
		Version  string
		Train    Dot    // zero: Lease counts
		Lease    uint64 // place of the VersionTrain in the log
		Code     int
		Detail   string
		Manifest blob.Hash // of catalog.Manifest's bytes, kept as an object
	}
	// VersionDelete deletes one version.
	VersionDelete struct {
		Model   Dot
		Version string
	}
)

// Setting is one field of a model's output_config: its name and its JSON as it came.
type Setting struct {
	Name string
	JSON []byte // nil: back to the default
}

// Operations on the rest.
type (
	// WorkflowCreate makes a workflow.
	WorkflowCreate struct {
		ID    string
		Nodes []WorkflowNode
	}
	// WorkflowDelete deletes one.
	WorkflowDelete struct{ Workflow Dot }
	// Feedback keeps what a user said of a prediction or a search.
	Feedback struct {
		Model, Version string // empty for a search's
		JSON           []byte
	}
	// NetworkSwitch makes a base model the one that serves: what was derived with it answers
	// from here on, and the versions that were trained anew with it are current.
	NetworkSwitch struct {
		Base     [32]byte // see predict.Set.Base
		Versions []Renewed
	}
	// Horizon is the clock below which field writes are refused from here on.
	Horizon struct{ At HLC }
	// Rules puts a version of the fold's rules in force from here on, unless a newer one is. Who does not know it
	// cannot go on.
	Rules struct{ Version uint32 }
	// Refused stands where an operation of another site was not let in: it keeps the site's
	// sequence whole and tells the site why.
	Refused struct {
		Reason string // "scope: …", "quota: …" or "schema: …"
	}
)

// Renewed is a version that was trained anew, with another base model.
type Renewed struct {
	Model    Dot
	From     string // id of the version that it stands in for
	Version  string // its own id
	Manifest blob.Hash
}

// WorkflowNode is a step of a workflow: a model, and its version where one is fixed.
type WorkflowNode struct{ ID, Model, Version string }

// Operations of the control log: applications, keys and clients. Of keys and secrets the log
// has the hashes only.
type (
	// AppCreate makes an application. An id that was deleted is never an application again.
	AppCreate struct {
		ID, Name, Language string
		DefaultModel       string
		Owner              string // id of the account it belongs to; empty: the operator's
		LocalOnly          bool   // see catalog.App
	}
	// AppChange changes what may change of an application.
	AppChange struct {
		ID           string
		Name         *string // nil: as it is
		DefaultModel *string // likewise
		MaxStale     *uint64 // seconds, see catalog.App; likewise
		LocalOnly    *bool   // see catalog.App; likewise
	}
	// AppDelete deletes an application for ever, with its keys, its client and all that it holds.
	AppDelete struct{ ID string }
	// KeyCreate lets a key into an application, in the place of another of the same
	// application where Replaces says so.
	KeyCreate struct {
		Hash        [32]byte // SHA-256 of the key's text
		App         string
		Scopes      []string
		Description string
		Replaces    [32]byte // hash of the key that goes; zero: none
	}
	// KeyDelete shuts a key out.
	KeyDelete struct{ Hash [32]byte }
	// ClientSet gives an application its client, in the place of any that it has. Its tokens
	// are of a new generation.
	ClientSet struct {
		App    string
		ID     string
		Secret [32]byte // SHA-256 of the secret's text
	}
	// TokensRevoke begins a new generation of an application's tokens: those before are dead.
	TokensRevoke struct{ App string }
	// EdgeCreate makes an edge, which enrols once with a token.
	EdgeCreate struct {
		ID    string
		Name  string
		Token [32]byte // SHA-256 of the token's text
		Apps  []string // applications that it may hold
		Owner string   // id of the account it belongs to; empty: the operator's
	}
	// EdgeEnrolled gives an edge its key and the next free site.
	EdgeEnrolled struct {
		ID  string
		Key [32]byte // Ed25519, public
	}
	// EdgeRevoke shuts an edge out for ever.
	EdgeRevoke struct{ ID string }
	// SiteLease leases the next free site to a holder of an application, or prolongs the
	// lease of one.
	SiteLease struct {
		Site   Site     // 0: the next free one
		App    string   // with a new site, and so are the next two
		Holder string   // key, account or client that asked for it
		Secret [32]byte // SHA-256 of the text by which the site is known
		Edge   string   // id of the edge whose newest site in App this is; empty: a key, an account or a client holds it
		Life   uint64   // with Edge: random name of the request, which may come twice
		Until  HLC      // a site that is not heard of until then is not waited for
	}
	// SitesSkip leases none of the numbers up to one from here on: a log that was restored from
	// a backup does not know who got them.
	SitesSkip struct{ To Site }
	// TokenKeys says which keys access tokens are signed with, in the place of what an earlier one said:
	// who holds a copy reads tokens by them.
	TokenKeys struct {
		Issuer string // as tokens name it
		Keys   []PublicKey
	}
)

// PublicKey is the public half of an Ed25519 key.
type PublicKey struct {
	ID  string // as tokens name it
	Key [32]byte
}
