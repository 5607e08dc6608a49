package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// film returns the path of the film for the specs and for the calls of other clients. It is six seconds long.
func film(t *testing.T) string {
	t.Helper()
	return filepath.Join(testkit.Root(t), "origin", "server", "video", "testdata", "slides.webm")
}

// animation is a GIF of two frames of 5 s each.
const (
	animation = "GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\xff" + frame + frame + ";"
	frame     = "\x21\xf9\x04\x00\xf4\x01\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"
)

const general = "/models/aaa03c23b3724a16a56b629203edc62c"

// videoCalls are the requests of the clients' own video tests, in the form that each client sends. %s is replaced by the video's URL.
var videoCalls = map[string]struct{ path, contentType, name, body string }{
	"Python 2.6.2, test_video.py": {
		"/v2" + general + "/versions/aa9ca48295b37401f8af92ad1af0d91d/outputs", "application/json", "python:2.6.2",
		`{"inputs": [{"data": {"video": {%s}}}], "model": {"output_info": {"output_config": {"sample_ms": 2000}}}}`,
	},
	"Java 2.7.0, ImageAndVideoTests.java": {
		"/v2" + general + "/outputs", "application/json; charset=utf8", "java: 2.7.0",
		`{"inputs":[{"id":null,"data":{"video":{%s}}}],"model":{"output_info":{"output_config":{"sample_ms":2000}}}}`,
	},
	"PHP 0.7.0, PredictIntTest.php": {
		"/v2" + general + "/outputs", "application/json", "php:0.7.0",
		`{"inputs":[{"data":{"video":{%s},"metadata":[]}}],"model":{"output_info":{"output_config":{"sample_ms":2000}}}}`,
	},
	"C#, PredictIntTests.cs": {
		"//v2" + general + "/outputs", "application/json", "c#:1.4.0",
		`{"inputs":[{"data":{"video":{%s}}}],"model":{"output_info":{"output_config":{"language":null,"sample_ms":2000}}}}`,
	},
}

// predictVideos makes the video calls of the vendor's other clients with a film and a GIF, and checks what their tests assert: each time is
// a multiple of two seconds, and strict parsers find index and time even if they are 0.
func predictVideos(t *testing.T, base, key string) {
	t.Helper()
	videos := http.NewServeMux()
	videos.HandleFunc("/beer.mp4", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, film(t)) })
	videos.HandleFunc("/a.gif", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, animation) })
	server := httptest.NewServer(videos)
	defer server.Close()
	for client, call := range videoCalls {
		for _, video := range []string{"/beer.mp4", "/a.gif"} {
			url := server.URL + video
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+call.path, bytes.NewReader(fmt.Appendf(nil, call.body, `"url": "`+url+`"`)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Authorization": {"Key " + key}, "Content-Type": {call.contentType}, "X-Clarifai-Client": {call.name}}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if bad := checkFrames(body, url); res.StatusCode != 200 || bad != "" {
				t.Errorf("%s, %s: %d, %s\n%s", client, video, res.StatusCode, bad, body)
			}
		}
	}
}

// checkFrames returns the first fault of an answer about the video at url, which must have frames at 0, 2 and 4 s.
func checkFrames(body []byte, url string) string {
	var answer struct {
		Outputs []struct {
			Status struct{ Code int }
			Input  struct {
				Data map[string]struct{ URL string }
			}
			Data struct {
				Concepts json.RawMessage
				Frames   []struct {
					FrameInfo struct{ Index, Time *int64 } `json:"frame_info"`
					Data      struct {
						Concepts []struct {
							ID, Name string
							Value    *float64
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err.Error()
	}
	if len(answer.Outputs) != 1 || answer.Outputs[0].Status.Code != 10000 {
		return "no output, or one that failed"
	}
	out := answer.Outputs[0]
	if _, image := out.Input.Data["image"]; image || out.Input.Data["video"].URL != url {
		return "the input is not the video"
	}
	if out.Data.Concepts != nil || len(out.Data.Frames) != 3 {
		return fmt.Sprintf("%d frames, want 3, and concepts in frames only", len(out.Data.Frames))
	}
	for i, f := range out.Data.Frames {
		switch info := f.FrameInfo; {
		case info.Index == nil || info.Time == nil:
			return fmt.Sprintf("frame %d has no index or no time", i)
		case *info.Index != int64(i) || *info.Time != int64(2000*i):
			return fmt.Sprintf("frame %d has index %d and time %d", i, *info.Index, *info.Time)
		case len(f.Data.Concepts) != 20 || f.Data.Concepts[0].Value == nil:
			return fmt.Sprintf("frame %d has %d concepts, want 20", i, len(f.Data.Concepts))
		}
	}
	return ""
}
