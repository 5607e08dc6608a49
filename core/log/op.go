package log

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Writer identifies who makes operations: an origin, an edge, or a browser's profile. Numbers below 1<<32 are sites, which an origin leases.
type Writer uint64

// The sites of an origin, a server that has its own log. Leased sites are between them.
const (
	Origin        Writer = 1       // in the life that created the log
	RestoredSites Writer = 1 << 31 // the first one that it may use in a later life
)

// FirstRandomWriter is the first number of a writer that draws its number, uses it for one opening of a store, and never again. Lower
// numbers are those of sites, which continue.
const FirstRandomWriter Writer = 1 << 32

// IsSite reports whether w is a site.
func (w Writer) IsSite() bool { return w < FirstRandomWriter }

// IsOrigin reports whether w is a site of an origin, in any of its lives.
func (w Writer) IsOrigin() bool { return w == Origin || w >= RestoredSites && w.IsSite() }

// String returns the writer as users see it: a site in decimal, any other writer in 16 hexadecimal digits.
func (w Writer) String() string {
	if w.IsSite() {
		return strconv.FormatUint(uint64(w), 10)
	}
	return fmt.Sprintf("%016x", uint64(w))
}

// ParseWriter reads what [Writer.String] returns.
func ParseWriter(s string) (Writer, bool) {
	base := 10
	if len(s) == 16 {
		base = 16
	}
	n, err := strconv.ParseUint(s, base, 64)
	w := Writer(n)
	return w, err == nil && w.String() == s
}

// Dot names an operation permanently: its writer, and its sequence number among the writer's operations, which count from 1 and have 32
// bits. The dot also names the thing that the operation creates. A later thing with the same ID has another dot.
type Dot struct {
	Writer Writer `wire:"1"`
	Seq    uint64 `wire:"2,max=MaxSeq"`
}

// MaxSeq is the greatest sequence number. A writer that has given it is followed by another one.
const MaxSeq = math.MaxUint32

// AppendKey appends the dot to a key, in 12 bytes: the lower half of the writer, its upper half, and the sequence number. So the dots of a
// writer follow each other, and those of a site have the bytes of version 0.1.0, which stored the site and a number of 8 bytes.
func (d Dot) AppendKey(k []byte) []byte {
	return binary.BigEndian.AppendUint32(d.Writer.AppendKey(k), uint32(d.Seq))
}

// AppendKey appends the first 8 bytes of the keys of the writer's dots.
func (w Writer) AppendKey(k []byte) []byte {
	k = binary.BigEndian.AppendUint32(k, uint32(w))
	return binary.BigEndian.AppendUint32(k, uint32(w>>32))
}

// KeyWriter reads the writer in the last 8 bytes of a key, which has at least these.
func KeyWriter(k []byte) Writer {
	k = k[len(k)-8:]
	return Writer(binary.BigEndian.Uint32(k)) | Writer(binary.BigEndian.Uint32(k[4:]))<<32
}

// KeyDot reads the dot in the last 12 bytes of a key or value, which has at least these.
func KeyDot(k []byte) Dot {
	seq := len(k) - 4
	return Dot{Writer: KeyWriter(k[:seq]), Seq: uint64(binary.BigEndian.Uint32(k[seq:]))}
}

// HLC is a hybrid logical clock: milliseconds since 1970 in the upper 48 bits, and a counter in the lower 16.
type HLC uint64

// Time returns the wall time of h, in UTC and whole milliseconds.
func (h HLC) Time() time.Time { return time.UnixMilli(int64(h >> 16)).UTC() }

// Stamp orders the writes of one last-writer-wins register: by clock, then by writer.
//
//field:fields put get
type Stamp struct {
	At     HLC    `wire:"1,fixed"`
	Writer Writer `wire:"2"`
	Made   HLC    `wire:"3,fixed"` // see Op; 0: At
}

// MadeAt returns the clock that the maker gave the write.
func (s Stamp) MadeAt() HLC { return cmp.Or(s.Made, s.At) }

// Less reports whether s is older than o.
func (s Stamp) Less(o Stamp) bool { return s.At < o.At || s.At == o.At && s.Writer < o.Writer }

// Stamp returns the stamp of the fields that the operation writes.
func (o *Op) Stamp() Stamp { return Stamp{At: o.At, Writer: o.Dot.Writer} }

// MadeAt returns the clock that the operation's maker gave it. Together with the dot it identifies the operation.
func (o *Op) MadeAt() HLC { return cmp.Or(o.Made, o.At) }

// SetAt sets At. The operation keeps the clock that its maker gave it.
func (o *Op) SetAt(at HLC) {
	if o.At, o.Made = at, o.MadeAt(); o.Made == at {
		o.Made = 0
	}
}

// Op is one operation: a single write by one writer.
//
//field:message
//field:others Body
type Op struct {
	Dot   Dot    `wire:"+0"`
	At    HLC    `wire:"3,fixed"`
	By    string `wire:"4"` // ID of the key or account that requested it; empty for our own
	Body  Body
	Extra Extra  `wire:"+0"`
	Made  HLC    `wire:"5,fixed"` // clock that its maker gave it, if the origin has set At to another one; 0: At
	Rules uint32 `wire:"6"`       // version of the fold's rules that its maker knew; 0: a version before 4, whose operations lack Seen
}

// Extra is the fields in an operation that later versions added, in the protobuf wire format. They are stored and sent unchanged.
type Extra struct {
	Op   []byte `wire:"*"`
	Body []byte
}

// Entry is an operation at its place in a log. Seq counts from 1.
type Entry struct {
	Seq uint64
	Op  Op
}

// Body is the effect of an operation: one of the types below, by pointer.
type Body interface{ kind() Kind }

// Unknown is the body of an operation that a later version added. It is stored, and has no effect.
type Unknown struct {
	Kind Kind
	Data []byte
}

// Value is the value of a label.
type Value uint8

// Values of a label. A removed label stays in the state, like the other values, until the horizon passes it.
const (
	Removed Value = iota
	False
	True
)

// Label assigns a value to a concept of a picture.
type Label struct {
	Concept string `wire:"1"`
	Value   Value  `wire:"2,max=True"`
}

// Point is a place on Earth, in degrees.
type Point struct {
	Longitude float64 `wire:"1"`
	Latitude  float64 `wire:"2"`
}

// Operations on inputs.
type (
	// InputCreate makes an input. With Blob, its status is 30000, and its derived record was written before it. Without, its status is
	// 30001 until InputFetched.
	//
	//field:kind 16
	InputCreate struct {
		ID             string      `wire:"1"`
		URL            string      `wire:"2"` // as given; empty for a picture sent as bytes
		AllowDuplicate bool        `wire:"3"` // allows another input with the same URL
		MergeIfEqual   bool        `wire:"4"` // an existing input with this ID, blob, crop and URL gets the labels instead
		Blob           blob.Hash   `wire:"5"`
		ContentType    string      `wire:"6"` // for example "image/jpeg"; only with Blob
		Hosted         [16]byte    `wire:"7"` // public name of the picture, random
		Crop           raster.Crop `wire:"8"`
		Labels         []Label     `wire:"9"`
		Meta           []byte      `wire:"10"` // JSON as sent; nil: none
		Geo            *Point      `wire:"11"`
		ReadEXIF       bool        `wire:"12"`                          // the site that downloads the picture sets the place that its file has, with InputGeo
		Seen           SeenEach    `wire:"13,func=SeenEach,type=bytes"` // of Labels, for an existing input that gets them
	}
	// InputFetched ends the download of an input's picture: status 30000 with Blob, or an error's code with Detail. A program that can read a
	// file which an earlier version could not makes the input ready with it.
	//
	//field:kind 17
	InputFetched struct {
		Input       Dot       `wire:"1"`
		Code        int       `wire:"2"`
		Detail      string    `wire:"3"`
		Blob        blob.Hash `wire:"4"`
		ContentType string    `wire:"5"`
	}
	// InputLabels sets labels of an input.
	//
	//field:kind 18
	InputLabels struct {
		Input  Dot      `wire:"1"`
		Labels []Label  `wire:"2"`
		Seen   SeenEach `wire:"3,func=SeenEach,type=bytes"` // of Labels
	}
	// InputMeta writes parts of an input's metadata.
	//
	//field:kind 19
	InputMeta struct {
		Input  Dot         `wire:"1"`
		Writes []MetaWrite `wire:"2"`
		Seen   SeenEach    `wire:"3,func=SeenEach,type=bytes"` // of Writes: the parts that a write replaces or that hide it
	}
	// InputGeo sets an input's place; nil removes the place.
	//
	//field:kind 20
	InputGeo struct {
		Input Dot    `wire:"1"`
		Geo   *Point `wire:"2"`
		Seen  Seen   `wire:"3,func=Seen,type=bytes"`
	}
	// InputDelete deletes one input permanently.
	//
	//field:kind 21
	InputDelete struct {
		Input Dot `wire:"1"`
		Seen  HLC `wire:"2,fixed"` // clock, as made, of the newest of the input's labels, parts of metadata and place; 0: it has none
	}
	// InputDeleteAll deletes the inputs that Upto covers, also those that come after it. Without Upto it deletes every input that was created
	// before it, as in logs of earlier rules; then Barrier also keeps out inputs with an older clock.
	//
	//field:kind 22
	InputDeleteAll struct {
		Barrier bool  `wire:"1"`
		Upto    []Dot `wire:"2"` // for each writer the newest input that its maker saw; a dot with sequence number 0 covers none
	}
	// OutputsPatch edits the stored predictions of an input.
	//
	//field:kind 23
	OutputsPatch struct {
		Input Dot          `wire:"1"`
		Edits []OutputEdit `wire:"2"`
	}
)

// Covers reports whether the operation deletes the input dot by its name.
func (b *InputDeleteAll) Covers(dot Dot) bool {
	return slices.ContainsFunc(b.Upto, func(d Dot) bool { return d.Writer == dot.Writer && dot.Seq <= d.Seq })
}

// MetaWrite is a write to one path of a metadata document.
type MetaWrite struct {
	Path   []string   `wire:"1"` // member names from the root; empty: the whole document
	Action MetaAction `wire:"2,max=MetaAppend"`
	JSON   []byte     `wire:"3"` // the value as sent, or an array of the elements to append; nil with MetaRemove
}

// MetaAction is the action of a MetaWrite.
type MetaAction uint8

// Actions on a path.
const (
	MetaSet MetaAction = iota
	MetaRemove
	MetaAppend
)

// OutputEdit sets, or removes, the stored value of a predicted concept.
type OutputEdit struct {
	Concept string  `wire:"1"`
	Value   float32 `wire:"2"` // 0…1
	Removed bool    `wire:"3"`
}

// Operations on concepts and models.
type (
	// ConceptCreate makes a custom concept of the application.
	//
	//field:kind 32
	ConceptCreate struct {
		ID       string `wire:"1"`
		Name     string `wire:"2"`
		Language string `wire:"3"`
	}
	// ConceptName renames a concept. Operations name concepts by their IDs, because labels of several sites share them.
	//
	//field:kind 33
	ConceptName struct {
		ID   string `wire:"1"`
		Name string `wire:"2"`
		Seen Seen   `wire:"3,func=Seen,type=bytes"`
	}
	// ConceptDelete deletes a concept that no label, model, version or edit of a prediction uses. A later use of its ID creates it again.
	//
	//field:kind 41
	ConceptDelete struct {
		ID string `wire:"1"`
	}
	// ModelCreate makes a model and its first version, with status 21102.
	//
	//field:kind 34
	ModelCreate struct {
		ID       string    `wire:"1"`
		Name     string    `wire:"2"`
		Version  string    `wire:"3"` // ID of the first version
		Concepts []string  `wire:"4"`
		Config   []Setting `wire:"5"`
	}
	// ModelPatch changes a model. A change of concepts makes another version with status 21102.
	//
	//field:kind 35
	ModelPatch struct {
		Model   Dot       `wire:"1"`
		Name    *string   `wire:"2"` // nil: unchanged
		Config  []Setting `wire:"3"`
		Add     []string  `wire:"4"`
		Remove  []string  `wire:"5"`
		Version string    `wire:"6"`                      // ID of the version that a change of concepts makes; empty: none
		Seen    Seen      `wire:"7,func=Seen,type=bytes"` // of Name
	}
	// ModelDelete deletes a model and its versions permanently.
	//
	//field:kind 36
	ModelDelete struct {
		Model Dot `wire:"1"`
	}
	// ModelDeleteAll deletes every model that was created before it, in logs of earlier programs.
	//
	//field:kind 37
	ModelDeleteAll struct{}
	// VersionTrain requests a training of another version of a model, with status 21103.
	//
	//field:kind 38
	VersionTrain struct {
		Model   Dot    `wire:"1"`
		Version string `wire:"2"` // ID of the new version
	}
	// VersionResult ends a training: status 21100 with a manifest, or an error's code. Its lease names the VersionTrain that it answers: by
	// the dot, because a site that trains before the request is in the log does not know its place; in older logs, by the place.
	//
	//field:kind 39
	VersionResult struct {
		Model    Dot       `wire:"1"`
		Version  string    `wire:"2"`
		Train    Dot       `wire:"7"` // dot of the VersionTrain; zero: Lease counts
		Lease    uint64    `wire:"3"` // place of the VersionTrain in the log
		Code     int       `wire:"4"`
		Detail   string    `wire:"5"`
		Manifest blob.Hash `wire:"6"` // hash of the bytes of catalog.Manifest, which are stored as an object
	}
	// VersionDelete deletes one version.
	//
	//field:kind 40
	VersionDelete struct {
		Model   Dot    `wire:"1"`
		Version string `wire:"2"`
	}
)

// SetLeases gives each VersionResult without a lease that directly follows its VersionTrain the lease of that request.
func SetLeases(ops []Op) {
	for i := 1; i < len(ops); i++ {
		train, ok := ops[i-1].Body.(*VersionTrain)
		result, ends := ops[i].Body.(*VersionResult)
		if ok && ends && result.Train == (Dot{}) && result.Lease == 0 && result.Model == train.Model && result.Version == train.Version {
			leased := *result
			leased.Train = ops[i-1].Dot
			ops[i].Body = &leased
		}
	}
}

// Setting is one field of a model's output_config: its name and its JSON as sent.
type Setting struct {
	Name string `wire:"1"`
	JSON []byte `wire:"2"` // nil: reset to the default
}

// Operations on workflows, feedback, the network and the log.
type (
	// WorkflowCreate makes a workflow.
	//
	//field:kind 48
	WorkflowCreate struct {
		ID    string         `wire:"1"`
		Nodes []WorkflowNode `wire:"2"`
	}
	// WorkflowDelete deletes a workflow.
	//
	//field:kind 49
	WorkflowDelete struct {
		Workflow Dot `wire:"1"`
	}
	// Feedback stores a user's comment on a prediction or a search.
	//
	//field:kind 50
	Feedback struct {
		Model   string `wire:"1"` // empty for feedback on a search
		Version string `wire:"2"` // empty for feedback on a search
		JSON    []byte `wire:"3"`
	}
	// NetworkSwitch makes a base model the serving one. After this entry its derived records answer requests, and the versions that were
	// trained again with it are current.
	//
	//field:kind 52
	NetworkSwitch struct {
		Base     [32]byte           `wire:"1"` // see predict.Set.Base
		Versions []RetrainedVersion `wire:"2"`
	}
	// Horizon sets the clock below which writes are refused after this entry. By earlier rules it is the limit of writes of fields only.
	//
	//field:kind 51
	Horizon struct {
		At HLC `wire:"1,fixed"`
	}
	// Rules puts a version of the fold's rules in force after this entry, unless a newer one is. A program that does not know the version
	// must stop.
	//
	//field:kind 54
	Rules struct {
		Version uint32 `wire:"1"`
	}
	// Refused replaces an operation of another site that was not admitted. It keeps the site's sequence without a gap, and has the reason
	// for the site.
	//
	//field:kind 53
	Refused struct {
		Reason string `wire:"1"` // "scope: …", "quota: …" or "schema: …"
	}
)

// RetrainedVersion is a version that was trained again with another base model.
type RetrainedVersion struct {
	Model    Dot       `wire:"1"`
	From     string    `wire:"2"` // ID of the version that it replaces
	Version  string    `wire:"3"` // ID of the new version
	Manifest blob.Hash `wire:"4"`
	Detail   string    `wire:"5"` // of the version's status
}

// WorkflowNode is a step of a workflow: a model, and its version if the step fixes one.
type WorkflowNode struct {
	ID      string `wire:"1"`
	Model   string `wire:"2"`
	Version string `wire:"3"`
}

// Operations of the control log: applications, keys, clients, edges and sites. The log has only the hashes of keys and secrets.
type (
	// AppCreate makes an application. The ID of a deleted application cannot be used again.
	//
	//field:kind 64
	AppCreate struct {
		ID           string `wire:"1"`
		Name         string `wire:"2"`
		Language     string `wire:"3"`
		DefaultModel string `wire:"4"`
		Owner        string `wire:"5"` // ID of the account that owns it; empty: the operator
		LocalOnly    bool   `wire:"6"` // see catalog.App
	}
	// AppChange changes fields of an application.
	//
	//field:kind 67
	AppChange struct {
		ID           string  `wire:"1"`
		Name         *string `wire:"2"` // nil: unchanged
		DefaultModel *string `wire:"3"` // nil: unchanged
		MaxStale     *uint64 `wire:"4"` // seconds, see catalog.App; nil: unchanged
		LocalOnly    *bool   `wire:"5"` // see catalog.App; nil: unchanged
	}
	// AppDelete deletes an application permanently, with its keys, its client and all its data.
	//
	//field:kind 68
	AppDelete struct {
		ID string `wire:"1"`
	}
	// KeyCreate admits a key to an application. If Replaces is set, it replaces another key of the same application.
	//
	//field:kind 65
	KeyCreate struct {
		Hash        [32]byte `wire:"1"` // SHA-256 of the key's text
		App         string   `wire:"2"`
		Scopes      []string `wire:"3"`
		Description string   `wire:"4"`
		Replaces    [32]byte `wire:"5"` // hash of the replaced key; zero: none
	}
	// KeyDelete revokes a key.
	//
	//field:kind 66
	KeyDelete struct {
		Hash [32]byte `wire:"1"`
	}
	// ClientSet sets the client of an application and replaces the previous client. It begins a new generation of tokens.
	//
	//field:kind 69
	ClientSet struct {
		App    string   `wire:"1"`
		ID     string   `wire:"2"`
		Secret [32]byte `wire:"3"` // SHA-256 of the secret's text
	}
	// TokensRevoke begins a new generation of an application's tokens and so revokes the earlier ones.
	//
	//field:kind 70
	TokensRevoke struct {
		App string `wire:"1"`
	}
	// EdgeCreate makes an edge, which enrolls once with a token.
	//
	//field:kind 71
	EdgeCreate struct {
		ID    string   `wire:"1"`
		Name  string   `wire:"2"`
		Token [32]byte `wire:"3"` // SHA-256 of the token's text
		Apps  []string `wire:"4"` // applications that it may replicate
		Owner string   `wire:"5"` // ID of the account that owns it; empty: the operator
	}
	// EdgeEnrolled gives an edge its key and the next free site.
	//
	//field:kind 72
	EdgeEnrolled struct {
		ID  string   `wire:"1"`
		Key [32]byte `wire:"2"` // Ed25519, public
	}
	// EdgeRevoke revokes an edge permanently.
	//
	//field:kind 73
	EdgeRevoke struct {
		ID string `wire:"1"`
	}
	// SiteLease leases the next free site to a holder of an application, or extends the lease of a site.
	//
	//field:kind 74
	SiteLease struct {
		Site   Writer   `wire:"1"`       // 0: the next free site
		App    string   `wire:"2"`       // set with a new site, like the next two
		Holder string   `wire:"3"`       // key, account or client that requested it
		Secret [32]byte `wire:"4"`       // SHA-256 of the text that identifies the site's holder
		Edge   string   `wire:"6"`       // ID of the edge whose newest site in App this is; empty: a key, an account or a client holds it
		Life   uint64   `wire:"7,fixed"` // with Edge: random name of the request, which may come twice
		Until  HLC      `wire:"5,fixed"` // end of the lease; after it the log no longer waits for a silent site
	}
	// SitesSkip excludes all site numbers up to To from future leases: a log that was restored from a backup does not know who got them.
	//
	//field:kind 75
	SitesSkip struct {
		To Writer `wire:"1"`
	}
	// TokenKeys lists the keys that sign access tokens, and replaces the previous list. Replicas verify tokens with them.
	//
	//field:kind 76
	TokenKeys struct {
		Issuer string      `wire:"1"` // issuer in the tokens
		Keys   []PublicKey `wire:"2"`
	}
)

// PublicKey is the public half of an Ed25519 key.
type PublicKey struct {
	ID  string   `wire:"1"` // key ID in the tokens
	Key [32]byte `wire:"2"`
}
