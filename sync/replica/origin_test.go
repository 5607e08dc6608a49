package replica_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

var app = catalog.AppID{1, 15: 1}

// origin is a minimal origin for the machine: a partition with its own log that answers the
// requests of the protocol, without credentials, limits or waiting.
type origin struct {
	testing.TB
	store        kv.Store
	part         *partition.Origin
	now          func() time.Time
	blobs        map[blob.Hash][]byte
	begun        map[blob.Hash][]byte
	leases       map[log.Writer]string // secrets of sites that version 0.1.0 leased
	secrets      map[log.Writer][]byte // secrets that the origin has checked
	stable       uint64                // newest stable entry; 0: the head
	unstable     bool                  // no entry is stable; stable is ignored
	reg          uint64                // sequence number of the app record; 0: no app record
	registerData string
	do           wire.Do // instruction in the answer to a session; 0: the normal one
	local        bool    // the application is local only
	seals        bool    // entries have seals, so that replicas keep them
	runs         int     // maximum number of entries in a frame
	rules        uint32  // newest fold rules that the origin knows
	base         [32]byte
	draws        byte             // number of openings that a missing place of the present one made it draw
	backs        [][]wire.Entries // frames of each request that gave some back
	grants       []wire.Grant     // of all sessions

	refuse map[string]int // by request name: status of an answer without a body; 0: connection lost

	lax bool                            // accept operations whose blobs are missing
	lie func(p *wire.Push) *wire.Pushed // returns a false answer to a push, or nil; nil: no lies

	export *partition.Export
	old    bool // the origin answers with its last snapshot, not a new one

	got      map[string]int // number of requests by name
	putBytes int
	dated    bool // it answers dates
}

func newOrigin(t testing.TB, now func() time.Time) *origin {
	o := &origin{
		TB: t, store: memkv.New(), now: now, blobs: map[blob.Hash][]byte{}, begun: map[blob.Hash][]byte{},
		rules: fold.FirstVersion, leases: map[log.Writer]string{}, secrets: map[log.Writer][]byte{}, runs: 3, got: map[string]int{}, base: [32]byte{7},
		registerData: "register",
	}
	o.open(log.Epoch{9})
	return o
}

func (o *origin) open(e log.Epoch) {
	o.Helper()
	var err error
	if o.part, err = partition.OpenOrigin(partition.Options{Store: o.store, App: app, Clock: o.now, Epoch: e, Secret: [32]byte(append(e[:], e[:]...)), Rules: o.rules}); err != nil {
		o.Fatal(err)
	}
}

// restore replaces the origin's store with store, which a process opens as e: the origin was restored from a backup, its disk was set back, or,
// if e is the opening of before, the machine was set back with its memory.
func (o *origin) restore(store kv.Store, e log.Epoch) {
	o.Helper()
	o.store, o.export, o.old = store, nil, false
	o.open(e)
}

// lacks reports whether the log lacks a place.
func (o *origin) lacks(c partition.Cursor) bool {
	o.Helper()
	has, err := o.part.HasPlace(log.Mark{Epoch: c.Epoch, To: c.Seq}, c.Chain)
	if err != nil {
		o.Fatal(err)
	}
	return !has
}

// chain returns the chain of the log at an entry.
func (o *origin) chain(seq uint64) log.Chain {
	o.Helper()
	chain, err := o.part.Log().Chain(seq)
	if err != nil {
		o.Fatal(err)
	}
	return chain
}

// byNames puts the rules of names in force, as every origin does when it opens a log.
func (o *origin) byNames() {
	o.Helper()
	o.rules = fold.Version
	o.open(log.Epoch{9, 1})
}

// has reports whether the log has an operation by a name.
func (o *origin) has(dot log.Dot) bool {
	o.Helper()
	n, err := o.part.Names(dot.Writer)
	if err != nil {
		o.Fatal(err)
	}
	return n.Has(dot.Seq)
}

// dots counts the operations of the log that make an input, by its ID.
func (o *origin) dots() map[string]int {
	n := map[string]int{}
	if err := o.part.Log().Read(o.part.Log().Floor(), func(e log.Entry) bool {
		if b, ok := e.Op.Body.(*log.InputCreate); ok {
			n[b.ID]++
		}
		return true
	}); err != nil {
		o.Error(err)
	}
	return n
}

// copyOf returns a new store with all keys and values of from.
func copyOf(t testing.TB, from kv.Store) kv.Store {
	t.Helper()
	to := memkv.New()
	var b kv.Batch
	err := from.Scan(nil, nil, func(key, value []byte) bool {
		b.Put(key, value)
		return true
	})
	if err == nil {
		err = to.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// submit submits operations of a user of the origin, with the derived records of their pictures.
func (o *origin) submit(bodies ...log.Body) []fold.Verdict {
	o.Helper()
	v, err := o.part.Submit(context.Background(), "key", bodies, func(b *kv.Batch) {
		for _, body := range bodies {
			if in, ok := body.(*log.InputCreate); ok && !in.Blob.IsZero() {
				catalog.PutDerived(b, app, o.base, in.Blob, in.Crop, derivedOf(in.Blob))
			}
		}
	})
	if err != nil {
		o.Fatal(err)
	}
	return v
}

// derivedOf returns the derived record of a picture.
func derivedOf(h blob.Hash) catalog.DerivedData {
	return catalog.DerivedData{Embedding: bytes.Repeat(h[:8], 4), Values: []float32{float32(h[0])}}
}

// answer returns the origin's answer to a request.
func (o *origin) answer(a *replica.Ask) replica.Answer {
	query, err := url.ParseQuery(a.Query)
	if err != nil {
		o.Fatal(err)
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(a.Path, "/v2/sync/"), "/")
	o.got[name]++
	if name != "session" && query.Get("app") != app.String() {
		o.Fatalf("%s %s?%s names no application", a.Method, a.Path, a.Query)
	}
	if !slices.Contains(a.Header, api.Field{Name: "Sync-Protocol", Value: "2"}) {
		o.Fatalf("%s %s with the headers %v", a.Method, a.Path, a.Header)
	}
	var body []byte
	status := 200
	if status, refused := o.refuse[name]; refused {
		if status == 0 {
			return replica.Answer{ID: a.ID, Err: errors.New("connection lost")}
		}
		return replica.Answer{ID: a.ID, Status: status}
	}
	receives := name == "session" || name == "push" || name == "back" || name == "blobs" && a.Method != "GET"
	switch {
	case o.local && !receives:
		err = &wire.Refusal{Code: wire.RefusedScope, Detail: "local only"}
	case name == "session":
		body, err = o.session(a.Body)
	case name == "changes":
		body, err = o.changes(query)
	case name == "push":
		body, err = o.push(a.Body)
	case name == "back":
		body, err = o.back(a.Body)
	case name == "snapshot":
		body, err = o.snapshot(rest, query)
	case name == "digest":
		body, err = o.digest()
	case name == "dates":
		body, err = o.dates(a.Body)
	case name == "blobs" && rest == "have":
		body, err = o.have(a.Body)
	case name == "blobs" && a.Method == "PUT":
		status, body, err = o.put(rest, a)
	case name == "blobs":
		status, body, err = o.get(rest, a)
	default:
		o.Fatalf("nobody answers %s %s", a.Method, a.Path)
	}
	head := []api.Field{{Name: "Content-Type", Value: wire.ContentType}}
	var refusal *wire.Refusal
	if errors.As(err, &refusal) {
		return replica.Answer{ID: a.ID, Status: refusal.Status(), Header: head, Body: refusal.Encode()}
	}
	if err != nil {
		o.Fatalf("%s %s: %v", a.Method, a.Path, err)
	}
	if status == 206 {
		from := len(o.blobs[hashOf(rest)]) - len(body)
		head = append(head, api.Field{Name: "Content-Range", Value: fmt.Sprintf("bytes %d-%d/%d", from, from+len(body)-1, from+len(body))})
	}
	return replica.Answer{ID: a.ID, Status: status, Header: head, Body: body}
}

func hashOf(text string) (h blob.Hash) {
	_, _ = hex.Decode(h[:], []byte(text))
	return h
}

func (o *origin) session(body []byte) ([]byte, error) {
	s, err := wire.DecodeSession(body)
	if err != nil || len(s.Apps) != 1 {
		return nil, fmt.Errorf("session: %w", err)
	}
	at := s.Apps[0]
	out := wire.SessionReply{Fold: fold.Version, Now: wire.MillisOf(o.now())}
	if out.Protocol, _, err = s.Agree(wire.Support{Min: wire.Oldest, Max: wire.Protocol, Schema: field.Version}); err != nil {
		return nil, err
	}
	if o.dated {
		out.Links = []wire.Link{{Name: wire.LinkDates, Path: "/v2/sync/dates"}}
	}
	l := o.part.Log()
	g := wire.Grant{App: at.App, Do: wire.DoTail, Head: l.Head(), Stable: o.stableAt()}
	if o.lacks(partition.Cursor{Epoch: at.Epoch, Seq: at.Seq, Chain: at.Chain}) {
		g.Lacks = true
		if g.Have, g.HaveChain, err = o.part.Common(at.Kept); err != nil {
			return nil, err
		}
		if at.Epoch == o.part.Opening() { // the machine was set back with its memory
			o.draws++
			o.part.SetOpening(log.Epoch{99, o.draws})
		}
	}
	g.Opening = o.part.Opening()
	if g.Lacks || at.Seq+1 < l.Floor() {
		g.Do = wire.DoRebase
	}
	if o.do != 0 {
		g.Do = o.do
	}
	if o.local { // such a grant has no numbers of the log
		g.Do, g.Detail, g.Drain, g.Head, g.Stable = wire.DoRefused, "local only", true, 0, 0
	}
	out.Grants = []wire.Grant{g}
	o.grants = append(o.grants, g)
	return out.Encode(), nil
}

// checkOpening returns a refusal if a request names another opening than the log's.
func (o *origin) checkOpening(named log.Epoch) error {
	if now := o.part.Opening(); named != now {
		return &wire.Refusal{Code: wire.RefusedEpoch, Epoch: now}
	}
	return nil
}

// queryOpening does the same with the opening in a query, which must have one.
func (o *origin) queryOpening(q url.Values) error {
	var named log.Epoch
	if n, err := hex.Decode(named[:], []byte(q.Get("opening"))); err != nil || n != len(named) {
		o.Fatalf("query %v names no opening", q)
	}
	return o.checkOpening(named)
}

// dates answers as package feed does.
func (o *origin) dates(body []byte) ([]byte, error) {
	m, err := wire.DecodeDatesRequest(body)
	out := wire.Dates{}
	for names := m.Names; len(names) > 0 && err == nil; names = names[catalog.DerivedNameBytes:] {
		var d wire.Date
		d.Taken, d.Read, err = catalog.Read(o.store, app).TakenOf(names[:catalog.DerivedNameBytes])
		out.Dates = append(out.Dates, d)
	}
	return out.Encode(), err
}

// back answers a request in which a replica returns frames that the log may lack.
func (o *origin) back(body []byte) ([]byte, error) {
	m, err := wire.DecodeBack(body)
	if err != nil {
		return nil, err
	}
	if err := o.checkOpening(m.Opening); err != nil {
		return nil, err
	}
	b := partition.Returned{Opening: m.Opening, Missing: map[log.Dot]string{}}
	var frames []wire.Entries
	for _, data := range m.Frames {
		e, err := wire.DecodeEntriesFrame(data)
		if err != nil {
			return nil, err
		}
		entries, err := log.DecodeRows(e.Rows, e.From)
		if err != nil || uint64(len(entries)) != e.To-e.From {
			o.Fatalf("a frame of %d entries from %d to %d: %v", len(entries), e.From, e.To, err)
		}
		for i := range entries {
			for _, h := range needs(&entries[i].Op) {
				if _, ok := o.blobs[h]; !ok {
					b.Missing[entries[i].Op.Dot] = partition.LostPicture
				}
			}
		}
		frames = append(frames, e)
		b.Frames = append(b.Frames, partition.Frame{Epoch: e.Epoch, From: e.From, To: e.To, Chain: e.Chain, Rows: e.Rows, Seal: e.Seal, Before: e.Before})
	}
	if len(frames) == 0 {
		o.Fatal("a request gives no frames back")
	}
	err = o.part.TakeBack(o.Context(), &b, nil)
	if errors.Is(err, partition.ErrSeal) {
		return nil, &wire.Refusal{Code: wire.RefusedContent, Detail: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	o.backs = append(o.backs, frames)
	return (&wire.TakenBack{Opening: m.Opening, To: frames[len(frames)-1].To}).Encode(), nil
}

func (o *origin) stableAt() uint64 {
	if o.unstable {
		return 0
	}
	if o.stable != 0 {
		return o.stable
	}
	return o.part.Log().Head()
}

func (o *origin) changes(q url.Values) ([]byte, error) {
	if err := o.queryOpening(q); err != nil {
		return nil, err
	}
	l := o.part.Log()
	since, err := strconv.ParseUint(q.Get("since"), 10, 64)
	if err != nil {
		return nil, err
	}
	bare, at := q.Get("only") == "entries", partition.Cursor{Seq: since}
	_, _ = hex.Decode(at.Epoch[:], []byte(q.Get("epoch")))
	_, _ = hex.Decode(at.Chain[:], []byte(q.Get("chain")))
	if bare {
		since = max(since, l.Floor()-1)
	} else if o.lacks(at) || since+1 < l.Floor() {
		end := wire.End{Why: wire.WhyRebase}
		return wire.AppendFrame(nil, wire.TypeEnd, end.Encode()), nil
	}
	var out []byte
	if have, _ := strconv.ParseUint(q.Get("register"), 10, 64); o.reg > have && !bare {
		r := wire.AppRecord{App: app.String(), Seq: o.reg, Data: []byte(o.registerData)}
		out = wire.AppendFrame(out, wire.TypeAppRecord, r.Encode())
	}
	head := l.Head()
	for since < head {
		of := l.EpochOf(since + 1)
		var entries []log.Entry
		if err := l.Read(since+1, func(e log.Entry) bool {
			entries = append(entries, e)
			return len(entries) < o.runs && e.Seq < of.To
		}); err != nil {
			return nil, err
		}
		if !bare {
			out = o.before(out, entries, q.Get("vectors") == "q16")
		}
		to := since + uint64(len(entries))
		e := wire.Entries{Epoch: of.Epoch, From: since, To: to, Before: o.chain(since), Chain: o.chain(to), Rows: logtest.Rows(entries)}
		if o.seals {
			e.Seal = o.part.Seal(to, e.Chain)
		}
		out = wire.AppendFrame(out, wire.TypeEntries, e.Encode())
		since = to
	}
	k := wire.Checkpoint{Opening: o.part.Opening(), To: since, Head: head, Stable: o.stableAt(), Now: wire.MillisOf(o.now())}
	out = wire.AppendFrame(out, wire.TypeCheckpoint, k.Encode())
	end := wire.End{Why: wire.WhyDone}
	return wire.AppendFrame(out, wire.TypeEnd, end.Encode()), nil
}

// before appends the frames with the records and objects that entries need.
func (o *origin) before(out []byte, entries []log.Entry, vectors bool) []byte {
	d := wire.Derived{Base: o.base}
	for i := range entries {
		switch b := entries[i].Op.Body.(type) {
		case *log.InputCreate:
			if vectors && !b.Blob.IsZero() {
				x := derivedOf(b.Blob)
				d.Records = append(d.Records, wire.DerivedRecord{Blob: b.Blob, Crop: b.Crop, Record: encodeDerived(o.TB, b, x)})
			}
		case *log.VersionResult:
			data, err := catalog.Read(o.store, app).Object(b.Manifest)
			if err != nil {
				continue
			}
			for at := 0; at < len(data); at += 100 {
				piece := wire.Object{Hash: b.Manifest, Size: uint64(len(data)), Offset: uint64(at), Data: data[at:min(at+100, len(data))]}
				out = wire.AppendFrame(out, wire.TypeObject, piece.Encode())
			}
		}
	}
	if len(d.Records) > 0 {
		out = wire.AppendFrame(out, wire.TypeDerived, d.Encode())
	}
	return out
}

// encodeDerived returns the stored form of a derived record.
func encodeDerived(t testing.TB, b *log.InputCreate, x catalog.DerivedData) (data []byte) {
	t.Helper()
	store := memkv.New()
	var batch kv.Batch
	catalog.PutDerived(&batch, app, [32]byte{1}, b.Blob, b.Crop, x)
	if err := store.Apply(&batch); err != nil {
		t.Fatal(err)
	}
	err := store.Scan(nil, nil, func(_, value []byte) bool {
		data = slices.Clone(value)
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (o *origin) push(body []byte) ([]byte, error) {
	p, err := wire.DecodePush(body)
	if err != nil {
		return nil, err
	}
	l := o.part.Log()
	if err := o.checkOpening(p.Opening); err != nil {
		return nil, err
	}
	if !o.knows(&p) {
		o.Fatalf("a push of writer %v with the secret %x", p.Writer, p.Secret)
	}
	if o.lie != nil {
		if lie := o.lie(&p); lie != nil {
			return lie.Encode(), nil
		}
	}
	ops, err := wire.DecodeOps(p.Rows)
	if err != nil {
		return nil, err
	}
	for i := range ops {
		if ops[i].Dot.Writer != p.Writer {
			o.Fatalf("writer %v pushes for writer %v", p.Writer, ops[i].Dot.Writer)
		}
		for _, h := range needs(&ops[i]) {
			if _, ok := o.blobs[h]; !ok && !o.lax {
				o.Fatalf("operation %v came before %v, which it needs", ops[i].Dot, h)
			}
		}
	}
	had, err := o.part.Names(p.Writer)
	if err != nil {
		return nil, err
	}
	offer := partition.Offer{Opening: p.Opening, Ops: ops, Before: p.Before, Gap: p.Gap, Also: func(b *kv.Batch) { o.putRecords(b, ops) }}
	_, _, err = o.part.AcceptOffer(context.Background(), &offer)
	switch {
	case errors.Is(err, partition.ErrSequence):
		return nil, &wire.Refusal{Code: wire.RefusedSequence, Accepted: had.Last()}
	case errors.Is(err, partition.ErrName):
		return nil, &wire.Refusal{Code: wire.RefusedContent, Detail: err.Error()}
	case err != nil:
		return nil, err
	}
	out := wire.Pushed{Opening: p.Opening, Accepted: ops[len(ops)-1].Dot.Seq, Head: l.Head(), Stable: o.stableAt()}
	return out.Encode(), nil
}

// knows reports whether a push shows the secret of its writer.
func (o *origin) knows(p *wire.Push) bool {
	if p.Writer.IsSite() {
		secret, leased := o.leases[p.Writer]
		return leased && secret == string(p.Secret)
	}
	if bytes.Equal(o.secrets[p.Writer], p.Secret) && len(p.Secret) > 0 {
		return true
	}
	if len(p.Secret) != partition.SecretSize || partition.WriterOf(app, p.Secret) != p.Writer {
		return false
	}
	o.secrets[p.Writer] = p.Secret
	return true
}

// putRecords adds the records that the origin writes with accepted operations.
func (o *origin) putRecords(b *kv.Batch, ops []log.Op) {
	for i := range ops {
		switch body := ops[i].Body.(type) {
		case *log.InputCreate:
			if !body.Blob.IsZero() {
				catalog.PutDerived(b, app, o.base, body.Blob, body.Crop, derivedOf(body.Blob))
			}
		case *log.VersionResult:
			catalog.PutObject(b, app, o.blobs[body.Manifest])
		}
	}
}

// needs returns the blobs that an operation names.
func needs(op *log.Op) (list []blob.Hash) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		list = append(list, b.Blob)
	case *log.InputFetched:
		list = append(list, b.Blob)
	case *log.VersionResult:
		list = append(list, b.Manifest)
	}
	return slices.DeleteFunc(list, blob.Hash.IsZero)
}
