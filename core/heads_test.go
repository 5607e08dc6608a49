package core_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestNetworkChangeWithImportedHead changes the network while a version has an imported head. The version has no inputs for training, so
// the change completes without it. The model then answers why it does not predict, and predicts after its next training.
func TestNetworkChangeWithImportedHead(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	r := &renewing{TB: t, World: apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), old, nil, nil)}
	r.add(4, map[string]string{"red.png": "warm", "blue.png": "cold"})
	r.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"closed_environment":true}}}}`)
	r.call("POST", "/v2/models/own/versions", "")
	r.Step(t, time.Second)
	trained := r.custom("red.png")
	h, err := r.Engine.ExportHead(r.App, "own", "")
	if err != nil {
		t.Fatal(err)
	}
	h.Head.Bias[0]--
	version, err := r.Engine.ImportHead(t.Context(), r.App, h)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.custom("red.png"); v >= trained {
		t.Errorf("with a lower bias red is %v, before it was %v", v, trained)
	}

	r.ReopenWithNetwork(t, next, old)
	for rounds := 0; r.base() != next.Base(); rounds++ {
		if rounds > 500 {
			t.Fatal("the change of the network does not end")
		}
		r.Now = r.Now.Add(time.Second)
		r.Round(t)
	}
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	got := r.Serve(r, api.Request{Method: "POST", Path: "/v2/models/own/outputs", Body: []byte(`{"inputs":[{"data":{"image":{"base64":"` + picture + `"}}}]}`)})
	if want := "model_version_id '" + version + "' was imported for a previous network; train or import another version."; got.Status == 200 || !strings.Contains(string(got.Body), want) {
		t.Errorf("an imported version of another network answers %d %s, want %q", got.Status, got.Body, want)
	}
	r.call("POST", "/v2/models/own/versions", "")
	r.Step(t, time.Second)
	if v := r.custom("red.png"); v < 0.5 {
		t.Errorf("trained on the other network, the model gives red %v", v)
	}
}
