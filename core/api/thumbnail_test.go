package api_test

import (
	"bytes"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
)

// TestThumbnailAtReplica: if the host permits it, a replica creates the thumbnail of a picture that its origin did not send, once. It
// equals the origin's, byte for byte. Otherwise the replica has none. If the picture is unavailable, the answer has the reason.
func TestThumbnailAtReplica(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		settings := map[string]string{}
		if enabled {
			settings["thumbnails"] = "made"
		}
		c := apitest.NewReplica(t, apitest.Tiny(t), settings)
		c.Origin.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(
			`{"inputs":[{"id":"half","data":{"image":{"url":"http://pictures.test/half.png","crop":[0,0,0.5,1]}}},{"id":"lost","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)})
		c.Origin.Step(t, 0)
		c.Pull(t)
		thumbnail := func(w *apitest.World, id string) (r api.Response, jobs int) {
			call := w.Engine.Begin(t.Context(), &api.Request{Method: "GET", Path: "/v2/inputs/" + id + "/thumbnail", Authorization: "Key " + w.Key})
			for !call.Done() {
				var results []api.Result
				for _, job := range call.Jobs() {
					jobs++
					result := w.RunJob(job)
					if id == "lost" {
						result = api.Result{Err: api.ErrFetch}
					}
					results = append(results, result)
				}
				call.Resume(results)
			}
			return call.Response(), jobs
		}
		want, _ := thumbnail(c.Origin, "half")
		if img, err := jpeg.Decode(bytes.NewReader(want.Body)); err != nil || img.Bounds().Dy() != 4 {
			t.Fatalf("the origin's = %v, %v", img, err)
		}
		for attempt := range 2 {
			got, jobs := thumbnail(c.World, "half")
			switch {
			case !enabled && (got.Status != 404 || jobs > 0):
				t.Errorf("a copy that makes none: %d after %d jobs", got.Status, jobs)
			case enabled && (got.Status != 200 || got.ContentType != "image/jpeg" || !bytes.Equal(got.Body, want.Body) || jobs != 1-attempt):
				t.Errorf("time %d: %d %s of %d bytes after %d jobs", attempt, got.Status, got.ContentType, len(got.Body), jobs)
			}
		}
		if got, _ := thumbnail(c.World, "lost"); got.Status != 404 || enabled != strings.Contains(string(got.Body), "the download from the origin failed") {
			t.Errorf("a picture that is not here: %d %s", got.Status, got.Body)
		}
	}
}
