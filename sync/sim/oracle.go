package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/fold/foldtest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// oracle is the reference for the checks of one log. It stores every entry of the origin's log that survived a crash, separately from the
// disks of the parties, and every operation that a replica acknowledged.
type oracle struct {
	app     catalog.AppID
	entries []log.Entry // all entries of the log, from the first
	chains  []log.Chain // chain before the first entry, and after each entry
	codes   []fold.Code // verdict of the fold on each entry
	store   *memkv.Store
	fold    *fold.Fold
	states  []kv.Snapshot       // state before the first entry, and after each entry
	digests map[uint64][32]byte // digests of states that were needed, by entry
	model   *foldtest.Model

	at     map[log.Dot]uint64 // entry of each operation of the log: its first one
	again  map[log.Dot]bool   // operations that came again after a horizon forgot their names
	killed map[log.Dot]uint64 // entry that deleted each deleted input
	issued map[log.Dot]issue  // acknowledged operations of replicas
	clock  []log.HLC          // highest clock of the log before the first entry, and up to each entry
	names  map[log.Dot][]byte // content of each name in any log of the run

	created func(op *log.Op)                                      // called for each entry
	over    func(op *log.Op, token partition.Token) (bool, error) // reports whether token was revoked by the time of op; nil: unknown
	ruled   uint64                                                // first entry that activates newer rules; 0: none
	memory  bool                                                  // replicas may be set back with their memory, and give names twice
	forked  bool                                                  // the log lacks entries that it had
	latest  time.Time                                             // latest time that the origin's clock ever showed
}

// issue is an operation that a replica acknowledged to its user.
type issue struct {
	data  []byte          // operation, as its maker encoded it
	seen  uint64          // entry up to which its maker had folded the log
	chain log.Chain       // chain of the log at that entry
	token partition.Token // token of the caller, as its maker knew it
	by    *party          // its maker
	other *issue          // an operation of the same name that its maker issued before it was set back with its memory; nil: none
}

func newOracle(app catalog.AppID, first log.Chain, created func(op *log.Op)) *oracle {
	o := &oracle{
		app: app, store: memkv.New(), fold: fold.NewUpTo(app, newRules), digests: map[uint64][32]byte{}, model: foldtest.NewModel(app),
		at: map[log.Dot]uint64{}, again: map[log.Dot]bool{}, killed: map[log.Dot]uint64{}, issued: map[log.Dot]issue{}, names: map[log.Dot][]byte{}, created: created,
	}
	o.states = append(o.states, o.store.Snapshot())
	o.clock = append(o.clock, 0)
	o.chains = append(o.chains, first)
	return o
}

// maxLead is the maximum time by which an entry's clock may be ahead of the origin's clock when the origin appends it.
const maxLead = 2*time.Second + time.Millisecond

func (o *oracle) head() uint64 { return uint64(len(o.entries)) }

// follow reads the new entries of the origin's log, and checks I3 and I7.
func (o *oracle) follow(l *log.Store) error {
	head := l.Head()
	if head < o.head() {
		return fmt.Errorf("I2: the log ends at %d and was at %d", head, o.head())
	}
	if head == o.head() {
		return nil
	}
	if from := o.head() + 1; l.Floor() > from {
		return fmt.Errorf("I7: the log was trimmed to %d, unread beyond %d", l.Floor(), from)
	}
	var wrong error
	err := l.Read(o.head()+1, func(e log.Entry) bool {
		wrong = o.take(e)
		return wrong == nil
	})
	if err = cmp.Or(wrong, err); err != nil {
		return err
	}
	chain, err := l.Chain(head)
	if err == nil && chain != o.chains[head] {
		err = errors.New("I7: the chain of the log is not that of its entries")
	}
	return err
}

// take folds one entry with the fold and with the model, and checks that both agree. It also checks I3, I5 and I8.
func (o *oracle) take(e log.Entry) error {
	dot := e.Op.Dot
	before, twice := o.at[dot]
	if knows, err := o.knows(dot, o.head()); err != nil || knows {
		return cmp.Or(err, fmt.Errorf("I3: operation %v is entry %d and %d", dot, before, e.Seq))
	}
	for seq := o.model.SiteSeq(dot.Writer) + 1; seq < dot.Seq; seq++ {
		if lost := (log.Dot{Writer: dot.Writer, Seq: seq}); o.names[lost] == nil {
			return fmt.Errorf("I3: entry %d is operation %v, and no log ever had %v", e.Seq, dot, lost)
		}
	}
	_, again := o.names[dot]
	if was, ok := o.issued[dot]; ok && !again && was.by.edge != nil && was.by.edge.revoked {
		return fmt.Errorf("I8: entry %d is operation %v of an edge that was revoked", e.Seq, dot)
	}
	if err := o.name(&e.Op); err != nil {
		return err
	}
	if o.again[dot] = twice; !twice {
		o.at[dot] = e.Seq
	}
	if lead := e.Op.At.Time().Sub(o.latest); lead > maxLead && e.Op.At > o.clock[len(o.clock)-1]+1 {
		return fmt.Errorf("I5: entry %d of %v has a clock %v ahead of the origin's", e.Seq, dot, lead)
	}
	if was, ok := o.issued[dot]; ok && !again {
		if err := o.isIssue(&e, was); err != nil {
			return err
		}
	}
	tx := kv.NewOverlay(o.store)
	if err := o.fold.Begin(tx); err != nil {
		return err
	}
	v, err := o.fold.Apply(&e)
	if err != nil {
		return err
	}
	o.fold.End()
	if err := o.store.Apply(tx.Batch()); err != nil {
		return err
	}
	if twice && v.Code == fold.OK && !isRepeatable(e.Op.Body) && !o.isUsed(dot) {
		return fmt.Errorf("I3: entry %d gives operation %v of entry %d, %T, its effect again", e.Seq, dot, before, e.Op.Body)
	}
	if err := o.foldModel(&e, v); err != nil {
		return err
	}
	o.entries = append(o.entries, e)
	if b, ok := e.Op.Body.(*log.Rules); ok && b.Version == newRules && o.ruled == 0 {
		o.ruled = e.Seq
	}
	o.created(&e.Op)
	o.chains = append(o.chains, o.chains[len(o.chains)-1].Next(log.Encode(nil, &e.Op)))
	o.codes = append(o.codes, v.Code)
	o.states = append(o.states, o.store.Snapshot())
	o.clock = append(o.clock, max(o.clock[len(o.clock)-1], e.Op.At))
	return nil
}

// foldModel folds an entry with the model, and compares the verdict of the fold.
func (o *oracle) foldModel(e *log.Entry, v fold.Verdict) error {
	lived := o.model.Inputs()
	if code := o.model.Fold(&e.Op); code != 0 && code != v.Code {
		return fmt.Errorf("entry %d, %v %T: verdict %v %s, want %v", e.Seq, e.Op.Dot, e.Op.Body, v.Code, v.Detail, code)
	}
	lives := o.model.Inputs()
	for _, dot := range lived {
		if !slices.Contains(lives, dot) {
			o.killed[dot] = e.Seq
		}
	}
	if o.isUsed(e.Op.Dot) { // a machine gave the name again, and a horizon had forgotten it: this is another input
		delete(o.killed, e.Op.Dot)
	}
	return nil
}

// isRepeatable reports whether an operation may count again after a horizon forgot its name, since it then changes nothing.
func isRepeatable(body log.Body) bool {
	_, rules := body.(*log.Rules)
	return rules || log.OnlyDeletes(body)
}

// knows reports whether the state after an entry has the name of an operation. A horizon forgets the names of old writers.
func (o *oracle) knows(dot log.Dot, seq uint64) (bool, error) {
	n, err := catalog.Read(o.states[seq], o.app).Names(dot.Writer)
	return n.Has(dot.Seq), err
}

// name checks I3: a name has one content, in all logs of the run and in all outboxes. Only the origin changes an operation: it corrects the
// clock and the author, or refuses the operation.
func (o *oracle) name(op *log.Op) error {
	if _, refused := op.Body.(*log.Refused); refused {
		if o.names[op.Dot] == nil {
			o.names[op.Dot] = []byte{}
		}
		return nil
	}
	content := log.Encode(nil, &log.Op{Dot: op.Dot, At: op.MadeAt(), Body: op.Body, Extra: op.Extra})
	if was := o.names[op.Dot]; len(was) > 0 && !bytes.Equal(was, content) && !o.memory {
		return fmt.Errorf("I3: the name %v has two contents: %q and %q", op.Dot, was, content)
	}
	o.names[op.Dot] = content
	return nil
}

// issue records an operation that a replica acknowledged.
func (o *oracle) issue(op *log.Op, x issue) error {
	if was, ok := o.issued[op.Dot]; ok {
		if !o.memory {
			return fmt.Errorf("I3: the name %v was given twice", op.Dot)
		}
		x.other = &was
		x.by.world.stats.Used++
	}
	o.issued[op.Dot] = x
	return nil
}

// isUsed reports whether a name was given twice.
func (o *oracle) isUsed(dot log.Dot) bool { return o.issued[dot].other != nil }

// has reports whether the log has the operation with a name that was made at a clock.
func (o *oracle) has(dot log.Dot, made log.HLC) bool {
	if !o.isUsed(dot) {
		return o.at[dot] != 0
	}
	return slices.ContainsFunc(o.entries, func(e log.Entry) bool { return e.Op.Dot == dot && e.Op.MadeAt() == made })
}

// hasIssue reports whether the log has the last operation that was issued with a name.
func (o *oracle) hasIssue(dot log.Dot) bool {
	op, err := log.Decode(o.issued[dot].data)
	return err == nil && o.has(dot, op.MadeAt())
}

// isIssue checks that an entry is an operation that was issued under its dot, or a justified refusal of it (I2, I3, I5, I8).
func (o *oracle) isIssue(e *log.Entry, was issue) error {
	op, err := log.Decode(was.data)
	if err != nil {
		return err
	}
	if o.memory && op.MadeAt() != e.Op.MadeAt() {
		if was.other == nil { // a loss of power hid that it was made
			return nil
		}
		return o.isIssue(e, *was.other)
	}
	revoked, err := o.checkRevoked(e, &op, was.token)
	if err != nil {
		return err
	}
	if op.MadeAt() != e.Op.MadeAt() {
		return fmt.Errorf("I3: entry %d is operation %v of clock %x, issued at %x", e.Seq, op.Dot, e.Op.MadeAt(), op.MadeAt())
	}
	op.At, op.Made = e.Op.At, e.Op.Made // the origin may have set another clock
	switch _, refused := e.Op.Body.(*log.Refused); {
	case revoked:
	case refused && strings.HasPrefix(e.Op.Body.(*log.Refused).Reason, "blob:") && o.forked:
		// Before the log was restored, the operation ended in another verdict. Its blob may have been deleted then.
	case refused && partition.Admit(&op) == "":
		return fmt.Errorf("I2: entry %d refuses operation %v, %T, that it might have taken: %+v", e.Seq, op.Dot, op.Body, e.Op.Body)
	case !refused && !bytes.Equal(log.Encode(nil, &op), log.Encode(nil, &e.Op)):
		return fmt.Errorf("I3: entry %d is another operation %v than the one that was issued: %T %+v, want %T %+v", e.Seq, e.Op.Dot, e.Op.Body, e.Op, op.Body, op)
	}
	if !o.leadsOn(was.seen, was.chain) {
		return nil
	}
	if seen := o.clock[was.seen]; e.Op.At <= seen {
		return fmt.Errorf("I5: entry %d of %v has clock %x and its maker had seen %x", e.Seq, e.Op.Dot, e.Op.At, seen)
	}
	return nil
}

// checkRevoked reports whether an entry is the refusal of an operation with a revoked token. It returns an error if the origin refused a
// valid token or accepted a revoked one.
func (o *oracle) checkRevoked(e *log.Entry, op *log.Op, token partition.Token) (bool, error) {
	refused := isTokenRefusal(e)
	if o.over == nil {
		return refused, nil
	}
	switch over, err := o.over(op, token); {
	case err != nil:
		return false, err
	case over == refused:
	case refused:
		return false, fmt.Errorf("I2: entry %d refuses operation %v for a token that was good: %+v", e.Seq, op.Dot, token)
	case partition.Admit(op) == "": // otherwise the origin refuses it for another reason
		return false, fmt.Errorf("I8: entry %d is operation %v, asked for with a token that had been revoked: %+v", e.Seq, op.Dot, token)
	}
	return refused, nil
}

// isTokenRefusal reports whether an entry is the refusal of an operation with a revoked token.
func isTokenRefusal(e *log.Entry) bool {
	b, ok := e.Op.Body.(*log.Refused)
	return ok && b.Reason == "scope: the token was revoked"
}

// countTokenRefusals returns the number of operations that the log refuses for a revoked token.
func (o *oracle) countTokenRefusals() (n int) {
	for i := range o.entries {
		if isTokenRefusal(&o.entries[i]) {
			n++
		}
	}
	return n
}

// fork returns the oracle of a log that continues after entry seq of o's log, since the disk of the origin went back to there.
func (o *oracle) fork(seq uint64) (*oracle, error) {
	f := newOracle(o.app, o.chains[0], func(*log.Op) {})
	f.forked, f.memory = true, o.memory
	f.latest, f.issued, f.names = o.latest, o.issued, o.names
	for _, e := range o.entries[:seq] {
		if err := f.take(e); err != nil {
			return nil, err
		}
	}
	f.created, f.over = o.created, o.over
	return f, nil
}

// digest returns the digest of the state after an entry.
func (o *oracle) digest(seq uint64) ([32]byte, error) {
	if d, ok := o.digests[seq]; ok {
		return d, nil
	}
	d, err := fold.Digest(o.states[seq], o.app)
	o.digests[seq] = d
	return d, err
}

// modelAt returns a new model that has folded the log up to an entry.
func (o *oracle) modelAt(seq uint64) *foldtest.Model {
	m := foldtest.NewModel(o.app)
	for i := range o.entries[:seq] {
		m.Fold(&o.entries[i].Op)
	}
	return m
}

// notePromises reads the log after the origin acknowledged n operations to its own user, who saw a state. It checks that they are the last n
// entries, and that they name what the user saw.
func (o *oracle) notePromises(p *partition.Origin, n int, shown catalog.Reader) error {
	if err := o.follow(p.Log()); err != nil {
		return err
	}
	for _, e := range o.entries[len(o.entries)-n:] {
		if !p.MadeBy(e.Op.Dot.Writer) {
			return fmt.Errorf("I7: entry %d of writer %v among those of the origin", e.Seq, e.Op.Dot.Writer)
		}
		if err := foldtest.CheckSeen(shown, &e.Op); err != nil {
			return err
		}
	}
	return nil
}

// verdict returns the verdict on an operation, or false if the log does not have the operation.
func (o *oracle) verdict(dot log.Dot) (fold.Code, bool) {
	seq, ok := o.at[dot]
	if !ok {
		return 0, false
	}
	return o.codes[seq-1], true
}
