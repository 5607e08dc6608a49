//go:build !wasip1

package feed_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	machine "github.com/sightline-dev/sightline/sync/replica"
)

// follower is a replica of a world's application, and the line between the two, which loses answers.
type follower struct {
	*world
	part     *partition.Replica
	blobs    *blob.Memory
	machine  *machine.Machine
	now      time.Time
	requests []machine.Ask
	wake     time.Time

	records records                   // app records that came
	lose    func(a *machine.Ask) bool // whether an answer is lost; nil: none is
	sent    int                       // bytes of pictures
	pushs   int
}

// follow makes one.
func (w *world) follow(rng *rand.ChaCha8) *follower {
	w.t.Helper()
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		w.t.Fatal(err)
	}
	f := &follower{world: w, blobs: blob.NewMemory(blob.Options{}), now: w.Now}
	store := memkv.New()
	var opening log.Epoch
	_, _ = rng.Read(opening[:])
	f.part, err = partition.OpenReplica(partition.Options{
		Store: store, App: app, Clock: func() time.Time { return f.now }, Epoch: opening,
	}, partition.ReplicaOptions{})
	if err == nil {
		f.machine, err = machine.New(machine.Options{
			App: app, Partition: f.part, Store: store, Blobs: f.blobs, AppRecords: &f.records, Live: machine.Once, Rand: rng, Audit: -1,
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	f.step(machine.Begin{})
	return f
}

func (f *follower) step(e machine.Event) {
	f.t.Helper()
	effects, err := f.machine.Step(f.now, e)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, x := range effects {
		switch x := x.(type) {
		case machine.Ask:
			f.requests = append(f.requests, x)
		case machine.WakeAt:
			f.wake = x.At
		}
	}
}

// answer carries the oldest request to the feed, and its answer back.
func (f *follower) answer() {
	f.t.Helper()
	a := f.requests[0]
	f.requests = f.requests[1:]
	if a.Method == "PUT" {
		f.sent += len(a.Body)
	}
	if a.Path == "/v2/sync/push" {
		f.pushs++
	}
	res := f.feed.Serve(context.Background(), &api.Request{
		Method: a.Method, Path: a.Path, Query: a.Query, Body: a.Body, Authorization: "Key " + f.Key,
		Header: func(name string) string {
			for _, x := range a.Header {
				if x.Name == name {
					return x.Value
				}
			}
			return ""
		},
	})
	var b bytes.Buffer
	if res.Stream != nil {
		if err := res.Stream(&b); err != nil {
			f.t.Fatal(err)
		}
		res.Body = b.Bytes()
	}
	if f.lose != nil && f.lose(&a) {
		f.step(machine.Answer{ID: a.ID, Err: errors.New("connection lost")})
		return
	}
	header := append([]api.Field{{Name: "Content-Type", Value: res.ContentType}}, res.Header...)
	f.step(machine.Answer{ID: a.ID, Status: res.Status, Header: header, Body: res.Body})
}

// settle runs until both have all entries.
func (f *follower) settle() {
	f.t.Helper()
	for range 10_000 {
		s := f.machine.Status()
		switch {
		case s.IsSettled() && s.Cursor == f.partition(f.App).Log().Head():
			return
		case len(f.requests) > 0:
			f.answer()
		default:
			f.now = f.now.Add(max(f.wake.Sub(f.now), 0))
			f.step(machine.Wake{})
		}
	}
	f.t.Fatalf("it does not settle: %+v", f.machine.Status())
}

// write makes an input of each picture.
func (f *follower) write(pictures ...[]byte) {
	f.t.Helper()
	var bodies []log.Body
	for _, data := range pictures {
		h, err := f.blobs.Put(context.Background(), bytes.NewReader(data), blob.Hash{})
		if err != nil {
			f.t.Fatal(err)
		}
		bodies = append(bodies, &log.InputCreate{Blob: h, ContentType: "image/png"})
	}
	if _, err := f.part.Submit(context.Background(), "key", bodies, nil); err != nil {
		f.t.Fatal(err)
	}
	f.step(machine.LocalWrite{})
}

// TestBytesOfPictures: a replica sends at most 1.01 times the bytes of new pictures, however many answers are lost and operations are
// sent again, and no bytes of pictures that the origin has.
func TestBytesOfPictures(t *testing.T) {
	w := newWorld(t, nil)
	chance := rand.NewChaCha8([32]byte{15})
	rng := rand.New(chance)
	f := w.follow(chance)
	f.settle()
	lost := map[string]int{}
	f.lose = func(a *machine.Ask) bool {
		if rng.IntN(3) > 0 {
			return false
		}
		lost[a.Method]++
		return true
	}
	var all [][]byte
	fresh := 0
	for range 12 {
		var some [][]byte
		for range 1 + rng.IntN(3) {
			data := paddedPicture(chance, rng.IntN(2<<20))
			fresh += len(data)
			some = append(some, data)
		}
		f.write(some...)
		f.settle()
		all = append(all, some...)
	}
	t.Logf("%d bytes sent of %d new ones, %d pushes, answers lost: %v", f.sent, fresh, f.pushs, lost)
	if ratio := float64(f.sent) / float64(fresh); ratio > 1.01 || ratio < 1 {
		t.Errorf("%d bytes were sent of %d new ones: %.3f times", f.sent, fresh, ratio)
	}
	if lost["PUT"] < 5 || lost["POST"] < 5 {
		t.Errorf("only %v answers were lost", lost)
	}
	f.sent = 0
	f.write(all...)
	f.settle()
	other := w.follow(chance)
	other.settle()
	other.write(all...)
	other.settle()
	if f.sent+other.sent != 0 {
		t.Errorf("%d and %d bytes were sent of pictures that the origin had", f.sent, other.sent)
	}
}

// records are the app records that a replica got. It stores the last one, as [register.AppRecords] does.
type records struct {
	seq uint64
	all []catalog.AppRecord
}

func (r *records) Seq() uint64 { return r.seq }

func (r *records) Apply(seq uint64, data []byte) (reason string, err error) {
	x, err := catalog.DecodeAppRecord(data)
	if err == nil {
		r.seq, r.all = seq, append(r.all, x)
	}
	return x.Revoked, err
}

// TestAppRecordOfOtherOpening: an origin that was set back has written something else to its control log, up to the same entry. Its replica
// gets the app record again, once, although it knows one of that entry.
func TestAppRecordOfOtherOpening(t *testing.T) {
	w, open := newSealedWorld(t, nil)
	open(w.Store)
	image := copyOf(t, w.Store)
	rename := func(name string) {
		t.Helper()
		if _, err := w.Engine.Register.ChangeApp(t.Context(), register.Caller{}, w.App, register.AppChange{Name: &name}); err != nil {
			t.Fatal(err)
		}
	}
	rename("first")
	f := w.follow(rand.NewChaCha8([32]byte{16}))
	expect := func(when string, n int, name string) {
		t.Helper()
		f.write(paddedPicture(rand.NewChaCha8([32]byte{byte(n)}), 1)) // begins a session if the opening is another
		f.settle()
		got := f.records.all
		if len(got) != n || got[n-1].Record.Name != name || got[n-1].Epoch != w.partition(w.App).Opening() {
			t.Errorf("%s: %d records, the last of %q in opening %x; want %d and %q", when, len(got), got[len(got)-1].Record.Name, got[len(got)-1].Epoch, n, name)
		}
	}
	expect("at first", 1, "first")
	expect("again", 1, "first")
	seq := f.records.seq
	open(image)
	rename("second")
	expect("after the origin was set back", 2, "second")
	if f.records.seq != seq {
		t.Errorf("the control log is at entry %d, so this test proves nothing; want %d", f.records.seq, seq)
	}
	open(w.Store)
	expect("after a restart", 3, "second")
	if err := w.Engine.Reopen(); err != nil {
		t.Fatal(err)
	}
	expect("in another opening of the same process", 4, "second")
	rename("third")
	expect("after a change", 5, "third")
}

// paddedPicture returns a picture of up to 2 MB, which no other picture is: decoders pass over what follows one.
func paddedPicture(chance io.Reader, n int) []byte {
	data := apitest.Picture("red.png")
	rest := make([]byte, n)
	_, _ = io.ReadFull(chance, rest)
	return append(data, rest...)
}
