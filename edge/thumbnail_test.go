package main_test

import (
	"bytes"
	"encoding/json"
	"image/jpeg"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// thumbnail asks a server for an input's.
func (s *server) thumbnail(t *testing.T, key, id string) (status int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/v2/inputs/"+id+"/thumbnail", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	res, err := asking.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// thumbed has an edge show small pictures: those that it makes of its origin's are the origin's, byte by byte, and stay when
// the origin is gone; one that is not here then is said not to be, and comes with the origin.
func thumbed(t *testing.T, binary string) {
	program, data, names := hubOf(t, binary), filepath.Join(t.TempDir(), "origin"), photos(t)
	app, key, _ := owner(t, program, data, "shared")
	hub := serve(t, program, data)
	way := newLink(t, strings.TrimPrefix(hub.base, "http://"))
	for i, id := range []string{"seen", "unseen"} {
		hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input(id, photo(t, names[i]))}})
	}
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(command(t, program, "edge", "create", "north", "--apps", app, "--data", data, "--json")), &made); err != nil {
		t.Fatal(err)
	}
	own := folder(t, binary)
	edge := serve(t, binary, own, "--origin", way.base, "--token", made.Token)
	until(t, "the edge has the inputs", func() bool {
		status, _, err := edge.as(t, key).do("GET", "/v2/inputs/unseen", nil)
		return err == nil && status == 200
	})
	_, want := hub.thumbnail(t, key, "seen")
	if img, err := jpeg.Decode(bytes.NewReader(want)); err != nil || img.Bounds().Empty() {
		t.Fatalf("the origin's thumbnail: %v", err)
	}
	same := func(when string) {
		t.Helper()
		if status, got := edge.thumbnail(t, key, "seen"); status != 200 || !bytes.Equal(got, want) {
			t.Errorf("%s: %d, %d bytes, want the origin's %d", when, status, len(got), len(want))
		}
	}
	same("made")
	same("kept")

	way.set(true)
	until(t, "the edge knows that its origin is gone", func() bool {
		c := copies(t, binary, own)
		return len(c) == 1 && c[0].Phase == "connecting" && c[0].Problem != ""
	})
	same("without the origin")
	if status, body := edge.thumbnail(t, key, "unseen"); status != 404 || !strings.Contains(string(body), "the origin does not send it now") {
		t.Errorf("a picture that is not here: %d %s", status, body)
	}
	edge.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("alone", photo(t, names[2]))}})
	if status, got := edge.thumbnail(t, key, "alone"); status != 200 || len(got) == 0 {
		t.Errorf("of what the edge has analysed: %d, %d bytes", status, len(got))
	}
	way.set(false)
	until(t, "what was not here comes with the origin", func() bool {
		status, _ := edge.thumbnail(t, key, "unseen")
		return status == 200
	})
	edge.terminate(t)
	hub.terminate(t)
}
