package feed_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	machine "github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// honest is a correct replica that syncs with the same origin as the hostile one.
type honest struct {
	w    *world
	app  catalog.AppID
	auth string
	part *partition.Replica
	kv   kv.Store
	pics *blob.Memory
}

// newHonest opens an empty replica of an application.
func (w *world) newHonest(app, key string) *honest {
	w.t.Helper()
	id, err := catalog.ParseAppID(app)
	if err != nil {
		w.t.Fatal(err)
	}
	w.drawn++
	h := &honest{w: w, app: id, auth: "Key " + key, kv: memkv.New(), pics: blob.NewMemory(blob.Options{})}
	h.part, err = partition.OpenReplica(partition.Options{
		Store: h.kv, App: id, Clock: func() time.Time { return w.Now }, Epoch: log.Epoch{8, byte(w.drawn)},
	}, partition.ReplicaOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// sync runs a machine until the replica has the whole log and the origin has all operations of the replica.
func (h *honest) sync() {
	h.w.t.Helper()
	m, err := machine.New(machine.Options{
		App: h.app, Partition: h.part, Store: h.kv, Blobs: h.pics, Live: machine.Once, Audit: -1,
		Rand: rand.NewChaCha8([32]byte{}), Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull},
	})
	if err != nil {
		h.w.t.Fatal(err)
	}
	events, wake := []machine.Event{machine.Begin{}}, h.w.Now
	for range 1000 {
		if s := m.Status(); len(events) == 0 && s.IsSettled() {
			return
		}
		var e machine.Event = machine.Wake{}
		if len(events) > 0 {
			e, events = events[0], events[1:]
		} else if wake.After(h.w.Now) {
			h.w.Now = wake
		}
		effects, err := m.Step(h.w.Now, e)
		if err != nil {
			h.w.t.Fatal(err)
		}
		for _, x := range effects {
			switch x := x.(type) {
			case machine.Ask:
				events = append(events, h.answer(x))
			case machine.WakeAt:
				wake = x.At
			}
		}
	}
	h.w.t.Fatalf("the honest replica is not in step: %+v", m.Status())
}

// answer returns the origin's answer to a request.
func (h *honest) answer(a machine.Ask) machine.Answer {
	h.w.t.Helper()
	r := &api.Request{Method: a.Method, Path: a.Path, Query: a.Query, Body: a.Body, Authorization: h.auth}
	r.Header = func(name string) string {
		for _, f := range a.Header {
			if f.Name == name {
				return f.Value
			}
		}
		return ""
	}
	res := h.w.feed.Serve(context.Background(), r)
	if res.Stream != nil {
		var b bytes.Buffer
		if err := res.Stream(&b); err != nil {
			h.w.t.Fatal(err)
		}
		res.Body = b.Bytes()
	}
	fields := append(res.Header, api.Field{Name: "Content-Type", Value: res.ContentType})
	return machine.Answer{ID: a.ID, Status: res.Status, Header: fields, Body: res.Body}
}

// write submits operations of a user of the honest replica.
func (h *honest) write(bodies ...log.Body) {
	h.w.t.Helper()
	if _, err := h.part.Submit(context.Background(), "someone", bodies, nil); err != nil {
		h.w.t.Fatal(err)
	}
}

// view syncs the replica, and returns a digest of its state, such as inputs and models. The digest leaves out the number of
// operations of each writer.
func (h *honest) view() string {
	h.w.t.Helper()
	h.sync()
	sum := sha256.New()
	err := h.part.ReadConfirmed(func(r kv.Reader) error {
		return catalog.Read(r, h.app).StateTables(func(key, value []byte) bool {
			if key[0] != 'c' && key[0] != 's' && key[0] != 'G' { // the header, names, and deletions of names that the log lacks
				fmt.Fprintf(sum, "%x %x\n", key, value)
			}
			return true
		})
	})
	if err != nil {
		h.w.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
