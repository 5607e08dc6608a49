package training

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// Codes that a training ends with.
const (
	CodeNoData      = 21110 // labelled inputs, but none that could be analysed
	CodeNoPositives = 21111 // labels, but none that is true
	CodeSingleClass = 21112 // exclusive concepts, fewer than two with a true label
	CodeFailed      = 21115 // anything else
)

// ErrNotAnalysed is returned by [Run.Err] when an input of the set has no embedding by the network
// in use, or when the network's background does not exist here yet. Either may exist later.
var ErrNotAnalysed = errors.New("an input of the training set is not analysed yet, or the background is not loaded yet")

// Models reads the network whose embeddings a training uses. *predict.Set implements it.
type Models interface {
	Base() [sha256.Size]byte
	// Background returns fs.ErrNotExist for a background that may be loaded later.
	Background() ([]predict.Embedding, error)
}

var _ Models = (*predict.Set)(nil)

const (
	scanned  = 256 // inputs that one step reads
	gathered = 256 // embeddings that one step reads
)

// Run is one training.
type Run struct {
	version catalog.Version
	models  Models
	view    *partition.View // nil once the set is gathered
	seq     uint64

	scan     *scan
	members  []member // of the training set, by ordinal
	next     int      // index of the next member to gather
	problem  train.Problem
	manifest catalog.Manifest
	digest   digester
	fitter   *train.Fitter
	outcome  *Outcome
	err      error
	reached  atomic.Uint64 // bits of Progress after the last step
}

// Outcome is the result of a training: the operation, and the manifest for the same batch, nil if no head was trained.
type Outcome struct {
	Result   log.VersionResult
	Manifest []byte
}

// startRun freezes the training set of a version at a view. The run closes the view.
func startRun(view *partition.View, models Models, version catalog.Version) *Run {
	r := newRun(view, models, version)
	r.scan = newScan(&version)
	return r
}

func newRun(view *partition.View, models Models, version catalog.Version) *Run {
	r := &Run{version: version, models: models, view: view, seq: view.Seq()}
	relation := RelationOf(version.Config)
	r.problem = train.Problem{Concepts: version.Concepts, Exclusive: relation.Exclusive, Closed: relation.Closed}
	r.problem.Precision = requestedPrecision(version.Config)
	if !relation.Closed {
		if r.problem.Background, r.err = models.Background(); errors.Is(r.err, fs.ErrNotExist) {
			r.err = fmt.Errorf("%w: %w", ErrNotAnalysed, r.err)
		}
	}
	r.manifest = catalog.Manifest{Version: version.ID, Base: models.Base(), Seq: r.seq}
	if n := len(version.Concepts); n > train.MaxConcepts { // replicas may add more than a call of /v2; each takes memory for each input
		r.end(CodeFailed, fmt.Sprintf("The version has %d concepts, and at most %d can be trained.", n, train.MaxConcepts))
	}
	return r
}

// Relation is how the concepts of a model relate.
type Relation struct {
	Exclusive bool // a picture shows at most one of them
	Closed    bool // every picture shows at least one of them
}

// RelationOf returns the relation that the settings of a model specify.
func RelationOf(config []catalog.Setting) Relation {
	return Relation{Exclusive: isSet(config, settingExclusive), Closed: isSet(config, settingClosed)}
}

// Settings of a model that decide how it is trained.
const (
	settingExclusive = "concepts_mutually_exclusive"
	settingClosed    = "closed_environment"
	settingHyper     = "hyper_parameters"
)

// requestedPrecision returns the precision that the settings of a version request, or 0.
func requestedPrecision(config []catalog.Setting) float64 {
	for i := range config {
		var d jsonio.Doc
		if config[i].Name != settingHyper || d.Parse(config[i].JSON, jsonio.Limits{}) != nil {
			continue
		}
		p, _ := form.RequestedPrecision(d.Root()) // older programs stored precisions out of range, which count as 0
		return p
	}
	return 0
}

func isSet(config []catalog.Setting, name string) bool {
	for i := range config {
		if config[i].Name == name {
			return string(config[i].JSON) == "true"
		}
	}
	return false
}

// Step does a few milliseconds of work and reports whether the run has ended: with an
// outcome, or with an error.
func (r *Run) Step() (done bool) {
	if r.outcome != nil || r.err != nil {
		return true
	}
	if err := r.step(); err != nil {
		r.err = err
	}
	r.reached.Store(math.Float64bits(r.share()))
	if r.outcome == nil && r.err == nil {
		return false
	}
	r.Close()
	return true
}

func (r *Run) step() error {
	switch {
	case r.scan != nil:
		done, err := r.scan.step(r.view.Reader)
		if done {
			r.members, r.scan = r.scan.members(), nil
		}
		return err
	case r.next < len(r.members):
		return r.gather()
	case r.fitter == nil:
		r.newFitter()
	case r.fitter.Step():
		if err := r.fitter.Err(); err != nil {
			return r.cannot(err)
		}
		return r.finish()
	}
	return nil
}

// Close closes the view that the run reads. A run that has ended has none.
func (r *Run) Close() {
	if r.view != nil {
		r.view.Close()
		r.view = nil
	}
}

// Progress returns the approximate share of the work that is done, 0 to 1. It is safe to call while Step runs.
func (r *Run) Progress() float64 { return math.Float64frombits(r.reached.Load()) }

// share returns the value of Progress after a step.
func (r *Run) share() float64 {
	switch {
	case r.outcome != nil:
		return 1
	case r.fitter != nil:
		return 0.2 + 0.8*r.fitter.Progress()
	case r.scan == nil:
		return 0.1 + 0.1*float64(r.next)/float64(max(1, len(r.members)))
	}
	return 0
}

// Outcome returns the result of the run; nil before its end and after an error.
func (r *Run) Outcome() *Outcome { return r.outcome }

// Err returns the reason why the run stopped: [ErrNotAnalysed], or an error of the store. The version is still pending then.
func (r *Run) Err() error { return r.err }

// gather reads the next embeddings.
func (r *Run) gather() error {
	for range gathered {
		if r.next == len(r.members) {
			return nil
		}
		m := &r.members[r.next]
		r.next++
		in, e, err := r.embedding(m)
		if err != nil {
			return err
		}
		if e != nil {
			r.learn(m, &in, e)
		}
	}
	return nil
}

// embedding returns the input of a member and its embedding. The embedding is nil if the input will never have one.
func (r *Run) embedding(m *member) (in catalog.Input, e *predict.Embedding, err error) {
	if m.failed {
		r.problem.Examples = append(r.problem.Examples, train.Example{Labels: m.signs})
		return in, nil, nil
	}
	if in, err = r.view.Input(m.ord); err != nil {
		return in, nil, err
	}
	d, err := r.view.DerivedOfInput(r.models.Base(), &in)
	if errors.Is(err, catalog.ErrNotFound) {
		return in, nil, fmt.Errorf("input %q: %w", in.ID, ErrNotAnalysed)
	}
	if err != nil {
		return in, nil, err
	}
	e = new(predict.Embedding)
	if err := e.UnmarshalBinary(d.Embedding); err != nil {
		return in, nil, fmt.Errorf("input %q: %w", in.ID, err)
	}
	return in, e, nil
}

// learn adds a member with its input and its embedding to the problem and the manifest.
func (r *Run) learn(m *member, in *catalog.Input, e *predict.Embedding) {
	r.manifest.Inputs = append(r.manifest.Inputs, catalog.TrainingInput{Dot: m.dot, Ord: m.ord, Labels: m.labels, ID: in.ID, Created: in.Created})
	example := train.Example{Embedding: e, Labels: m.signs, Other: m.other}
	r.digest.example(&example, len(r.problem.Concepts))
	r.problem.Examples = append(r.problem.Examples, example)
}

// newFitter creates the problem's fitter.
func (r *Run) newFitter() {
	r.Close()
	r.manifest.Digest = r.digest.sum(&r.problem, r.manifest.Base)
	r.fitter = train.NewFitter(&r.problem)
}

// cannot ends the run with the code of an unusable training set; it returns any other error.
func (r *Run) cannot(err error) error {
	for _, end := range ends {
		if errors.Is(err, end.err) {
			r.end(end.code, end.detail)
			return nil
		}
	}
	return err
}

// ends are the errors of a problem that its labels cause.
var ends = []struct {
	err    error
	code   int
	detail string
}{
	{train.ErrNoExamples, CodeNoData, "Inputs have labels for the model's concepts, but none of their pictures is available."},
	{train.ErrNoPositives, CodeNoPositives, "Inputs have labels for the model's concepts, but none is a positive label."},
	{train.ErrSingleClass, CodeSingleClass, "The concepts are mutually exclusive, and fewer than two of them have an input with a positive label."},
}

// unlabelledDetail is the detail of a trained version whose training set has no label for its concepts. Clients expect the code
// of a success for it.
const unlabelledDetail = "No picture is labelled with a concept of this model. This version calls nothing present."

// isUnlabelled reports whether no example has a label for one of the model's concepts.
func (r *Run) isUnlabelled() bool {
	return !slices.ContainsFunc(r.problem.Examples, func(e train.Example) bool { return e.Labels != nil })
}

// end sets the outcome.
func (r *Run) end(code int, detail string) {
	r.outcome = &Outcome{Result: log.VersionResult{
		Model: r.version.Model, Version: r.version.ID, Code: code, Detail: detail,
	}}
	r.outcome.hold(&r.version)
}

// hold sets the training request that the result answers, or the lease of a version without one.
func (o *Outcome) hold(v *catalog.Version) {
	if o.Result.Train = v.RequestedAt; v.RequestedAt == (log.Dot{}) {
		o.Result.Lease = v.Seq
	}
}

// finish completes the manifest and sets the outcome.
func (r *Run) finish() error {
	result := r.fitter.Result()
	head, err := result.Head.MarshalBinary()
	if err != nil {
		return fmt.Errorf("head of version %q: %w", r.version.ID, err)
	}
	if r.manifest.Metrics, err = result.Metrics.MarshalJSON(); err != nil {
		return fmt.Errorf("metrics of version %q: %w", r.version.ID, err)
	}
	r.manifest.Head = head
	detail := ""
	if r.isUnlabelled() {
		detail = unlabelledDetail
	}
	r.end(catalog.VersionTrained, detail)
	r.outcome.Manifest = r.manifest.Marshal()
	return nil
}
