package abi_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// events returns an event of each kind.
func events() []replica.Event {
	return []replica.Event{
		nil,
		replica.Begin{},
		replica.Wake{},
		replica.LocalWrite{},
		replica.BlobWanted{Blob: blob.Sum([]byte("b"))},
		replica.Offline{},
		replica.Online{},
		replica.Stop{},
		replica.Answer{
			ID: 1 << 40, Status: 200, Header: []api.Field{{Name: "Retry-After", Value: "3"}, {Name: "X-Empty"}},
			Body: []byte("frames"), More: true,
		},
		replica.Answer{ID: 7, Err: errors.New("connection reset")},
	}
}

// TestSum: an encoded answer preserves the hash of its body.
func TestSum(t *testing.T) {
	want := replica.Answer{ID: 8, Body: []byte("whole"), Sum: blob.Hash{1, 31: 9}}
	got, err := abi.ParseEvent(abi.AppendEvent(nil, want))
	if d := cmp.Diff(replica.Event(want), got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

// TestHostSnapshotMessages: the encoding preserves the events, effects and settings of a host that installs snapshots.
func TestHostSnapshotMessages(t *testing.T) {
	want := replica.Answer{ID: 8, Status: 200, Sum: blob.Hash{1, 31: 9}, Placed: true}
	got, err := abi.ParseEvent(abi.AppendEvent(nil, want))
	if d := cmp.Diff(replica.Event(want), got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	effects := abi.SyncResult{Effects: []replica.Effect{
		replica.Ask{ID: 3, Method: "GET", Path: "/v2/sync/snapshot/00", Place: true}, replica.InstallSnapshot{Manifest: []byte("manifest")},
	}}
	back, err := abi.ParseSyncResult(effects.Append(nil))
	if d := cmp.Diff(effects.Effects, back.Effects); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	for _, native := range []bool{false, true} {
		s := abi.Settings{Role: abi.Engine, Store: abi.StoreHost, Replica: &abi.Replica{Name: "copy", NativeSnapshots: native}}
		if x, err := abi.ParseSettings(s.Marshal()); err != nil || x.Replica.NativeSnapshots != native {
			t.Errorf("%+v, %v", x.Replica, err)
		}
	}
}

// moment is a time in nanoseconds that a float64 represents exactly, as it does all multiples of four milliseconds.
const moment = 1_700_000_000_124_000_000

// fullSyncResult returns a result with effects of each kind, and a status without zero fields.
func fullSyncResult() abi.SyncResult {
	at := time.Unix(0, moment)
	return abi.SyncResult{
		Err: kv.ErrFailed,
		Effects: []replica.Effect{
			replica.Ask{
				ID: 3, Method: "POST", Path: "/v2/sync/push", Query: "app=a", Header: []api.Field{{Name: "Accept", Value: "2 00"}},
				Body: []byte("operations"), Stream: true,
			},
			replica.Cancel{ID: 2},
			replica.WakeAt{At: at},
			replica.BlobReady{Blob: blob.Sum(nil)},
			replica.BlobReady{Err: blob.ErrNotFound},
			replica.StatusChange{},
			replica.Purge{Reason: "deleted", KeepOutbox: true},
		},
		Status: replica.Status{
			Phase: replica.Purged, Epoch: log.Epoch{1, 15: 2}, Cursor: 1, Head: 2, Contact: at, AsOf: at.Add(4 * time.Millisecond), Issued: 3,
			Accepted: 4, Folded: 5, Chunks: 6, ChunksDone: 7, Uploads: 8, Downloads: 9, BlobsSent: 10, BlobsGot: 11, Rebases: 12,
			Differences: 13, Audited: at.Add(8 * time.Millisecond), Refused: 14, Problem: "no route", Denied: "key", Limit: "Calls",
			Retry: at.Add(12 * time.Millisecond), Heard: at.Add(16 * time.Millisecond),
		},
	}
}

// syncVectors returns test vectors of events and their results.
func syncVectors() []vector {
	names := []string{"status", "begin", "wake", "local", "need", "offline", "online", "stop", "a piece of an answer", "an answer that is cut off"}
	b := blob.Sum([]byte("b"))
	eventFields := []fields{
		{},
		{"kind": 1.},
		{"kind": 2.},
		{"kind": 3.},
		{"kind": 5., "blob": b.String()},
		{"kind": 6.},
		{"kind": 7.},
		{"kind": 8.},
		{
			"kind": 4., "id": float64(1 << 40), "status": 200., "header": []any{fields{"name": "Retry-After", "value": "3"}, fields{"name": "X-Empty"}},
			"body": hex.EncodeToString([]byte("frames")), "more": true,
		},
		{"kind": 4., "id": 7., "error": "connection reset"},
	}
	var all []vector
	for i, e := range events() {
		all = append(all, vector{"event", names[i], hex.EncodeToString(abi.AppendEvent(nil, e)), eventFields[i]})
	}
	s := fullSyncResult()
	const at, ms = float64(moment), float64(time.Millisecond)
	return append(all, vector{"synced", "all", hex.EncodeToString(s.Append(nil)), fields{
		"error": fields{"code": float64(abi.StoreFailed), "text": kv.ErrFailed.Error()},
		"effect": []any{
			fields{
				"kind": 1., "id": 3., "method": "POST", "path": "/v2/sync/push", "query": "app=a",
				"header": []any{fields{"name": "Accept", "value": "2 00"}}, "body": hex.EncodeToString([]byte("operations")), "stream": true,
			},
			fields{"kind": 2., "id": 2.},
			fields{"kind": 3., "at": at},
			fields{"kind": 4., "blob": blob.Sum(nil).String()},
			fields{"kind": 4., "error": fields{"code": float64(abi.NoBlob), "text": blob.ErrNotFound.Error()}},
			fields{"kind": 5.},
			fields{"kind": 6., "why": "deleted", "keep_outbox": true},
		},
		"status": fields{
			"phase": 7., "epoch": hex.EncodeToString(s.Status.Epoch[:]), "cursor": 1., "head": 2., "contact": at, "as_of": at + 4*ms,
			"issued": 3., "accepted": 4., "folded": 5., "chunks": 6., "chunks_done": 7., "uploads": 8., "downloads": 9.,
			"blobs_sent": 10., "blobs_got": 11., "rebases": 12., "differences": 13., "audited": at + 8*ms, "refused": 14.,
			"problem": "no route", "denied": "key", "limit": "Calls", "retry": at + 12*ms, "heard": at + 16*ms,
		},
	}})
}

// TestEventsCross encodes and decodes each event.
func TestEventsCross(t *testing.T) {
	for _, want := range events() {
		got, err := abi.ParseEvent(abi.AppendEvent(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, byText); diff != "" {
			t.Errorf("%T (−want +got):\n%s", want, diff)
		}
	}
	if _, err := abi.ParseEvent([]byte{field.Version, 1 << 3, 99}); !errors.Is(err, field.ErrFormat) {
		t.Errorf("an event of no kind: %v, want ErrFormat", err)
	}
}

// TestEffectsCross encodes and decodes each effect and a status with all fields.
func TestEffectsCross(t *testing.T) {
	want := fullSyncResult()
	got, err := abi.ParseSyncResult(want.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, byText); diff != "" {
		t.Errorf("(−want +got):\n%s", diff)
	}
	if !errors.Is(got.Err, kv.ErrFailed) || !errors.Is(got.Effects[4].(replica.BlobReady).Err, blob.ErrNotFound) {
		t.Errorf("errors are %v and %v", got.Err, got.Effects[4])
	}
	for _, bad := range [][]byte{{field.Version, 3<<3 | 2, 2, 1 << 3, 99}, {field.Version, 2<<3 | 2, 2, 1 << 3, 99}} {
		if _, err := abi.ParseSyncResult(bad); !errors.Is(err, field.ErrFormat) {
			t.Errorf("ParseSynced(%x) = %v, want ErrFormat", bad, err)
		}
	}
	if left := zeros(want.Status); left != "" {
		t.Errorf("the status of this test has no %s", left)
	}
}

// TestReplicaSettings encodes and decodes settings of a replica.
func TestReplicaSettings(t *testing.T) {
	want := settings()
	want.Replica = &abi.Replica{
		Name: "edge of the north", Live: replica.Poll, Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull}, Audit: time.Minute,
		RegisterSeq: 7, Register: []byte("register"), Origin: "https://origin.example",
	}
	got, err := abi.ParseSettings(want.Marshal())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (−want +got):\n%s", err, diff)
	}
}

// byText compares errors by their text. The encoding loses the rest.
var byText = cmp.Comparer(func(a, b error) bool { return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error() })

// zeros returns the name of a field that is zero in a status, or "".
func zeros(s replica.Status) string {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			return v.Type().Field(i).Name
		}
	}
	return ""
}
