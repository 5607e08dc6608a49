package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
)

type devices struct {
	AsOf    string `json:"as_of"`
	Devices []struct {
		ID, Name, Kind, Contact string
		Position, Head          int
		KeysAsOf                string `json:"keys_as_of"`
	}
}

func (a *replicaCalls) devices(w *apitest.World) (got devices) {
	a.Helper()
	r := a.to(w, "GET /sync/devices", "")
	if err := json.Unmarshal(r.Body, &got); err != nil || r.Status != 200 {
		a.Fatalf("%d %s: %v", r.Status, r.Body, err)
	}
	return got
}

// TestDevicesAtReplica: a replica lists its origin and itself, as of its last contact. Its own position is known without one.
func TestDevicesAtReplica(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", pond)
	a.Pull(t)
	at := a.Partition(t).Cursor().Seq
	const now = "2026-11-21T18:00:00.000000Z"
	a.SyncStatus.Contact, a.SyncStatus.KeysAsOf = a.Now, a.Now
	a.SyncStatus.Name, a.SyncStatus.Kind, a.SyncStatus.Head = "Cabin", "edge", at+3
	var want devices
	text, err := json.Marshal(map[string]any{"as_of": now, "devices": []map[string]any{
		{"name": "https://origin.test", "kind": "origin", "contact": now, "position": at + 3, "head": at + 3},
		{"name": "Cabin", "kind": "edge", "contact": now, "position": at, "head": at + 3, "keys_as_of": now},
	}})
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, a.devices(a.World)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A folder that nothing syncs has neither a name nor contact.
	a.HasStatus = false
	got := a.devices(a.World)
	if len(got.Devices) != 2 || got.AsOf != "" || got.Devices[0].Contact != "" || got.Devices[1].Kind != "folder" || got.Devices[1].Position != int(at) {
		t.Errorf("without a status: %+v", got)
	}
}

// TestDevicesAtOrigin: an origin lists itself, and the devices that its host knows.
func TestDevicesAtOrigin(t *testing.T) {
	a := newReplicaCalls(t)
	if got := a.devices(a.Origin); len(got.Devices) != 1 || got.Devices[0].Kind != "origin" || got.AsOf == "" || got.Devices[0].Position != got.Devices[0].Head {
		t.Errorf("an origin without devices: %+v", got)
	}
	a.Origin.Devices = func(app string) ([]api.Device, error) {
		if app != a.App {
			t.Errorf("asked for the devices of %s", app)
		}
		return []api.Device{{ID: "e", Name: "Cabin", Kind: "edge"}, {ID: "p", Name: "Chrome (Linux)", Kind: "page", Position: 1, Contact: a.Now.Add(-time.Hour)}}, nil
	}
	got := a.devices(a.Origin)
	if len(got.Devices) != 3 || got.Devices[1].Contact != "" || got.Devices[2].Contact != "2026-11-21T17:00:00.000000Z" || got.Devices[2].Position != 1 || got.Devices[2].Head != got.Devices[0].Head {
		t.Errorf("%+v", got)
	}
}
