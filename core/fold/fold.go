package fold

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Rules that versions added.
const (
	// rulesOfConcepts is the first version in which concepts can be deleted, an edit of a prediction creates its concepts, and a version
	// that was trained again keeps the detail of its status.
	rulesOfConcepts = 2
	// rulesOfUnread is the first version in which a later download by the origin makes an input ready that ended as unread.
	rulesOfUnread = 2
	// rulesOfEXIF is the first version in which inputs have ReadEXIF.
	rulesOfEXIF = 2
	// RulesOfNames is the first version in which the names in the log decide, and not their order, which things live: a set of names for
	// each writer, deletions before their things, and [log.InputDeleteAll] by Upto. Every operation but a deletion can be stale. A later
	// download by anyone makes an unread input ready.
	RulesOfNames = 3
	// RulesOfContradictions is the first version that records contradictory values, and the clocks that their makers gave them.
	RulesOfContradictions = 4
)

// Version is the newest version of the rules that this program knows. Entries of a log ([log.Rules]) put versions in force; the first
// version is in force before any. Rules of a later version apply only after its entry, wherever the log is folded.
const Version = RulesOfContradictions

// FirstVersion is the version in force in a log without [log.Rules].
const FirstVersion = 1

// ErrNewer is returned for a state made by newer rules than this program knows, and for an entry that puts newer rules in force.
var ErrNewer = fmt.Errorf("fold rules of a newer version: %w", kv.ErrNewer)

// Fold folds one partition's log, a run of entries at a time:
//
//	f.Begin(tx)
//	for each entry { verdict, err := f.Apply(&entry) }
//	outcome := f.End()
//
// After an error, or if tx is not applied, the Fold must not be used again: the next run begins with a new one. It is not safe for
// concurrent use.
type Fold struct {
	app        catalog.AppID
	newest     uint32 // newest version of the rules that the fold knows
	pending    bool   // the operations are not in the log yet
	w          *catalog.Writer
	h          catalog.Header
	names      map[log.Writer]*catalog.Names // records of the writers met in this run
	deletions  bool                          // the state may have deletions whose things have not come
	concepts   map[string]bool               // ids known to be concepts
	nameFilter *kv.Filter                    // what inputs have had since there were none, see known.go; nil: it is not known
	uses       map[string]int                // number of labels and edits of inputs by concept, see uses.go; nil: it is not known
	out        Outcome

	e        *log.Entry // entry that is being folded
	position uint64     // position in the outbox of a pending operation
	stamp    log.Stamp  // stamp of e
	scratch  []byte
}

// New returns a fold of app's log.
func New(app catalog.AppID) *Fold {
	return NewUpTo(app, Version)
}

// NewUpTo returns a fold that knows the rules up to a version.
func NewUpTo(app catalog.AppID, version uint32) *Fold {
	return &Fold{app: app, newest: version, concepts: map[string]bool{}}
}

// Begin starts a run, whose entries write their changes into tx. It returns ErrNewer for a state made by newer rules.
func (f *Fold) Begin(tx *kv.Overlay) error {
	f.w = catalog.Write(tx, f.app)
	f.names = map[log.Writer]*catalog.Names{}
	f.out = Outcome{}
	if len(f.concepts) > maxKnown {
		clear(f.concepts)
	}
	if len(f.uses) > maxKnown {
		f.uses = nil
	}
	var err error
	if f.h, err = f.w.Header(); err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	if f.h.Fold > f.newest {
		return fmt.Errorf("fold by rules of version %d: %w", f.h.Fold, ErrNewer)
	}
	f.h.Fold = max(f.h.Fold, FirstVersion)
	f.know()
	f.deletions, err = f.w.HasDeletions()
	return err
}

// maxKnown is the number of known or used concepts above which a Fold forgets them, which bounds its memory.
const maxKnown = 1 << 16

// Seq returns the sequence number of the last folded entry.
func (f *Fold) Seq() uint64 { return f.h.Seq }

// Apply folds the next entry, which it borrows until End. It returns the store's errors, and kv.ErrCorrupt for an entry out of order.
// Invalid content of an entry is a verdict and no error, except rules that are not known: ErrNewer.
func (f *Fold) Apply(e *log.Entry) (Verdict, error) {
	if e.Seq != f.h.Seq+1 {
		return Verdict{}, fmt.Errorf("fold: entry %d after %d: %w", e.Seq, f.h.Seq, kv.ErrCorrupt)
	}
	f.e, f.stamp = e, e.Op.Stamp()
	if f.inForce(RulesOfContradictions) {
		f.stamp.Made = e.Op.Made
	}
	f.h.Seq = e.Seq
	f.h.Clock = max(f.h.Clock, e.Op.At)
	v, err := f.recordName()
	if err == nil && v.Code == 0 {
		v, err = f.body()
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("fold: entry %d: %w", e.Seq, err)
	}
	return v, nil
}

// End ends the run: it writes the header and returns the changes of the inputs.
func (f *Fold) End() Outcome {
	f.putNames()
	f.w.PutHeader(&f.h)
	return f.out
}

// body folds the operation by its kind.
func (f *Fold) body() (Verdict, error) {
	if f.app == catalog.Control {
		return f.control()
	}
	switch b := f.e.Op.Body.(type) {
	case *log.InputCreate:
		return f.inputCreate(b)
	case *log.InputFetched:
		return f.inputFetched(b)
	case *log.InputLabels:
		return f.inputLabels(b)
	case *log.InputMeta:
		return f.inputMeta(b)
	case *log.InputGeo:
		return f.inputGeo(b)
	case *log.OutputsPatch:
		return f.outputsPatch(b)
	case *log.InputDelete:
		return f.inputDelete(b)
	case *log.InputDeleteAll:
		return f.inputDeleteAll(b)
	case *log.Horizon:
		return f.horizon(b)
	case *log.Rules:
		return f.rules(b)
	case *log.Refused:
		return Verdict{Code: Refused, Detail: b.Reason}, nil
	}
	return f.modelBody()
}

func (f *Fold) rules(b *log.Rules) (Verdict, error) {
	if b.Version > f.newest {
		return Verdict{}, fmt.Errorf("rules of version %d: %w", b.Version, ErrNewer)
	}
	f.h.Fold = max(f.h.Fold, b.Version)
	return Verdict{Code: OK}, nil
}

// modelBody folds the operations that do not concern inputs.
func (f *Fold) modelBody() (Verdict, error) {
	switch b := f.e.Op.Body.(type) {
	case *log.ConceptCreate:
		return f.conceptCreate(b)
	case *log.ConceptName:
		return f.conceptName(b)
	case *log.ConceptDelete:
		return f.conceptDelete(b)
	case *log.ModelCreate:
		return f.modelCreate(b)
	case *log.ModelPatch:
		return f.modelPatch(b)
	case *log.ModelDelete:
		return f.modelDelete(b)
	case *log.ModelDeleteAll:
		f.w.DeleteModels()
		return Verdict{Code: OK}, f.forgetDead()
	case *log.VersionTrain:
		return f.versionTrain(b)
	case *log.VersionResult:
		return f.versionResult(b)
	case *log.VersionDelete:
		return f.versionDelete(b)
	case *log.WorkflowCreate:
		return f.workflowCreate(b)
	case *log.WorkflowDelete:
		return f.workflowDelete(b)
	case *log.Feedback:
		return f.feedback(b)
	case *log.NetworkSwitch:
		return f.networkSwitch(b)
	}
	return refusal("kind"), nil
}

// refusal returns the verdict on an invalid operation.
func refusal(why string) Verdict { return Verdict{Code: Refused, Detail: "schema: " + why} }

// missingVerdict returns the verdict for an operation that names something missing, or the error.
func missingVerdict(err error) (Verdict, error) {
	if errors.Is(err, catalog.ErrNotFound) {
		return Verdict{Code: Gone}, nil
	}
	return Verdict{}, err
}

// inForce reports whether the rules of a version apply to the operation. Pending operations are folded by the newest known rules: an origin
// of them puts them in force before it has the operations.
func (f *Fold) inForce(version uint32) bool {
	return f.h.Fold >= version || f.pending && f.newest >= version
}

// stale reports whether the operation's field writes are below the horizon.
func (f *Fold) stale() bool { return f.stamp.At < f.h.Horizon }

// idOr returns id. For an empty id it returns one made of the operation's dot: 32 lower-case hex digits.
func (f *Fold) idOr(id, kind string) string {
	if id != "" {
		return id
	}
	b := append([]byte(kind), f.app[:]...)
	sum := sha256.Sum256(f.e.Op.Dot.AppendKey(b))
	return hex.EncodeToString(sum[:16])
}
