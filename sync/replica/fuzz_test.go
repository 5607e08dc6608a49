package replica_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// hostile runs a replica against an origin whose answers are changed as data directs. The machine never panics, and its store never
// fails. No local write is lost, and none counts as confirmed before the replica has pulled it from the log, or lists it.
func hostile(t *testing.T, data []byte) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull}, AppRecords: &register{}, Audit: time.Hour})
	r.origin.byNames()
	r.origin.seals, r.origin.stable = true, 1
	first := r.origin.submit(create("a"), create("b"), r.picture(50), &log.ModelCreate{ID: "m", Version: "v"})[0].Dot
	var wrote []log.Dot
	purged := func() bool { return r.status().Phase == replica.Purged }
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	for len(data) > 0 && !purged() {
		if next()%4 == 0 {
			if next()%2 == 0 {
				wrote = append(wrote, r.write(create("mine"), r.picture(20))...)
			} else {
				wrote = append(wrote, r.write(&log.InputLabels{Input: first, Labels: []log.Label{{Concept: "x", Value: log.True}}}, create("other"))...)
			}
		}
		if len(r.requests) == 0 {
			r.sleep()
			continue
		}
		i := int(next()) % len(r.requests)
		a := r.requests[i]
		x := r.origin.answer(&a)
		mangle(&x, next)
		if !x.More {
			r.requests = append(r.requests[:i:i], r.requests[i+1:]...)
		}
		r.step(x)
	}
	own(t, r, wrote)
}

// own checks that each operation of the replica is either pending or, by its name, in the state that it has pulled, or that it is listed since
// the origin reported other operations by these names.
func own(t *testing.T, r *rig, wrote []log.Dot) {
	t.Helper()
	issued, settled := r.part.Outbox()
	var pending []log.Dot
	err := r.part.Pending(0, func(at uint64, op log.Op) bool {
		if pending = append(pending, op.Dot); at <= settled || wrote[at-1] != op.Dot {
			t.Errorf("operation %v is pending at %d, and %d are settled", op.Dot, at, settled)
		}
		return true
	})
	if err != nil || int(issued) != len(wrote) {
		t.Fatalf("%d operations were made, %d issued, %v", len(wrote), issued, err)
	}
	err = r.part.ReadConfirmed(func(k kv.Reader) error {
		for i, dot := range wrote {
			n, err := catalog.Read(k, app).Names(dot.Writer)
			if waits := slices.Contains(pending, dot); err != nil || n.Has(dot.Seq) == waits && (waits || !r.lists(dot)) {
				t.Errorf("operation %d, %v: pending %v, and in the state %v, %v", i+1, dot, waits, n.Has(dot.Seq), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// lists reports whether the replica lists an operation as a conflict.
func (r *rig) lists(dot log.Dot) bool {
	_, err := r.part.Conflict(dot)
	return err == nil
}

var statuses = []int{200, 200, 200, 200, 200, 206, 202, 204, 301, 400, 401, 403, 404, 409, 410, 413, 416, 426, 429, 500, 503, 0, -7, 99999}

// mangle changes an answer in a way that the bytes of next choose.
func mangle(x *replica.Answer, next func() byte) {
	switch next() % 13 {
	case 0: // no change
	case 1:
		x.Status = statuses[int(next())%len(statuses)]
	case 2: // changed bytes
		x.Body = append([]byte(nil), x.Body...)
		for range 1 + next()%4 {
			if n := len(x.Body); n > 0 {
				x.Body[(int(next())<<8|int(next()))%n] ^= next()
			}
		}
	case 3: // cut short
		if n := len(x.Body); n > 0 {
			x.Body = x.Body[:(int(next())<<8|int(next()))%n]
		}
	case 4: // any bytes
		x.Body = nil
		for range next() {
			x.Body = append(x.Body, next())
		}
	case 5: // a refusal
		r := wire.Refusal{Code: wire.RefusalCode(next() % 20), WaitMillis: uint64(next()), Accepted: uint64(next() % 8)}
		x.Status, x.Body = r.Status(), r.Encode()
		x.Header = []api.Field{{Name: "Content-Type", Value: wire.ContentType}}
	case 6: // frames of any kind
		var out []byte
		for range next() % 4 {
			body := make([]byte, next()%64)
			for i := range body {
				body[i] = next()
			}
			if len(body) > 0 {
				body[0] = 1
			}
			out = wire.AppendFrame(out, wire.Type(1+next()%10), body)
		}
		x.Body = append(out, x.Body...)
	case 7: // the body twice
		x.Body = append(append([]byte(nil), x.Body...), x.Body...)
	case 8:
		x.More = true
	case 9: // an end, with any reason
		e := wire.End{Why: wire.EndReason(next() % 9), WaitMillis: binary.LittleEndian.Uint64([]byte{next(), next(), next(), next(), next(), next(), next(), next()})}
		x.Body = wire.AppendFrame(nil, wire.TypeEnd, e.Encode())
	case 10: // a reply to a push
		p := wire.Pushed{Opening: log.Epoch{9, 1}, Accepted: uint64(next() % 12), Head: uint64(next()), Stable: uint64(next())}
		x.Body = p.Encode()
	case 11: // a reply to frames that were given back
		b := wire.TakenBack{Opening: log.Epoch{9, next() % 2}, To: uint64(next() % 12)}
		x.Body = b.Encode()
	case 12: // any reply to a session
		o := wire.SessionReply{Protocol: 1 + uint32(next()%3), Grants: []wire.Grant{{
			App: app.String(), Do: wire.Do(next() % 7), Opening: log.Epoch{next() % 10, next() % 2}, Head: uint64(next()), Drain: next()%4 == 0,
			Lacks: next()%4 == 0, Have: uint64(next() % 8),
		}}}
		x.Body = o.Encode()
	}
}

// FuzzAnswers runs hostile with fuzzed data.
func FuzzAnswers(f *testing.F) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		data := make([]byte, 200+rng.IntN(400))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4096 {
			hostile(t, data)
		}
	})
}
