package api_test

import (
	"bytes"
	"image/jpeg"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
)

// TestRendition: an origin and a replica make the same rendition of a whole picture at the first request, once. Nothing stores it: a
// restarted host makes it again. If the picture is unavailable, the answer has the reason.
func TestRendition(t *testing.T) {
	c := apitest.NewReplica(t, apitest.Tiny(t), nil)
	c.Origin.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(
		`{"inputs":[{"id":"half","data":{"image":{"url":"http://pictures.test/half.png","crop":[0,0,0.5,1]}}},{"id":"lost","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)})
	c.Origin.Step(t, 0)
	c.Pull(t)
	rendition := func(w *apitest.World, id, known string) (r api.Response, jobs int) {
		call := w.Engine.Begin(t.Context(), &api.Request{
			Method: "GET", Path: "/v2/inputs/" + id + "/rendition", Authorization: "Key " + w.Key, Known: known,
		})
		for !call.Done() {
			var results []api.Result
			for _, job := range call.Jobs() {
				if jobs++; job.Want != predict.WantRendition {
					t.Errorf("the job wants %b", job.Want)
				}
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
	want, jobs := rendition(c.Origin, "half", "")
	img, err := jpeg.Decode(bytes.NewReader(want.Body))
	if err != nil || img.Bounds().Dx() != 8 || img.Bounds().Dy() != 8 || want.ContentType != "image/jpeg" || jobs != 1 {
		t.Fatalf("the origin's = %d %s of %d bytes, %v, after %d jobs", want.Status, want.ContentType, len(want.Body), err, jobs)
	}
	tag := want.Header[slices.IndexFunc(want.Header, func(f api.Field) bool { return f.Name == "ETag" })].Value
	for _, w := range []*apitest.World{c.Origin, c.World} {
		for attempt := range 2 {
			got, jobs := rendition(w, "half", "")
			if got.Status != 200 || !bytes.Equal(got.Body, want.Body) || w == c.Origin && jobs > 0 || w == c.World && jobs != 1-attempt {
				t.Errorf("time %d: %d of %d bytes after %d jobs", attempt, got.Status, len(got.Body), jobs)
			}
		}
	}
	if got, jobs := rendition(c.World, "half", tag); got.Status != 304 || jobs != 0 {
		t.Errorf("with the tag %s: %d after %d jobs", tag, got.Status, jobs)
	}
	if got, _ := rendition(c.World, "lost", ""); got.Status != 404 || !strings.Contains(string(got.Body), "the download from the origin failed") {
		t.Errorf("a picture that is not here: %d %s", got.Status, got.Body)
	}
}
