package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
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

// pictureFile returns the file of a picture in a data folder.
func pictureFile(t *testing.T, folder, id, picture string) (file string) {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		t.Fatal(err)
	}
	name := blob.Sum(data).String()
	err = filepath.WalkDir(filepath.Join(folder, "blobs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(strings.ReplaceAll(path, string(filepath.Separator), ""), name) || filepath.Base(path) == name {
			file = path
		}
		return err
	})
	if err != nil || file == "" {
		t.Fatalf("no file holds the picture of %s: %v", id, err)
	}
	return file
}

// savedAgain is a picture as base64, saved again in another quality.
func savedAgain(t *testing.T, picture string) string {
	t.Helper()
	img, err := jpeg.Decode(strings.NewReader(decode(t, picture)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 60}); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// duplicates lists those of an input as a server does, without what belongs to the server.
func (c *client) duplicates(id string) (all []string) {
	c.t.Helper()
	for _, d := range at(c.t, c.must("GET", "/v2/inputs/"+id+"/duplicates", nil), "duplicates").([]any) {
		all = append(all, fmt.Sprint(at(c.t, d, "input", "id"), at(c.t, d, "tier"), at(c.t, d, "score")))
	}
	return all
}

// checkThumbnails: the thumbnails that an edge makes of its origin's pictures equal the origin's, byte by byte, and stay while the origin
// is offline. A picture that is missing then is reported as missing, and comes with the origin.
func checkThumbnails(t *testing.T, binary string) {
	program, data, names := hubOf(t, binary), filepath.Join(t.TempDir(), "origin"), photos(t)
	app, key, _ := owner(t, program, data, "shared")
	hub := serve(t, program, data)
	way := newLink(t, strings.TrimPrefix(hub.base, "http://"))
	for i, id := range []string{"seen", "unseen"} {
		hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input(id, photo(t, names[i]))}})
	}
	hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("saved", savedAgain(t, photo(t, names[0])))}})
	var enrolment struct{ Token string }
	if err := json.Unmarshal([]byte(command(t, program, "edge", "create", "north", "--apps", app, "--data", data, "--json")), &enrolment); err != nil {
		t.Fatal(err)
	}
	own := folder(t, binary)
	edge := serve(t, binary, own, "--origin", way.base, "--token", enrolment.Token)
	until(t, "the edge has the inputs", func() bool {
		status, _, err := edge.as(t, key).do("GET", "/v2/inputs/saved", nil)
		return err == nil && status == 200
	})
	if got, want := edge.as(t, key).duplicates("seen"), hub.as(t, key).duplicates("seen"); !slices.Equal(got, want) || !strings.Contains(fmt.Sprint(want), "re_encoded") {
		t.Errorf("before any thumbnail the duplicates are %v, want the origin's %v, one of them re_encoded", got, want)
	}
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
	if status, body := edge.thumbnail(t, key, "unseen"); status != 404 || !strings.Contains(string(body), "the download from the origin failed") {
		t.Errorf("a picture that is not here: %d %s", status, body)
	}
	edge.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("alone", photo(t, names[2]))}})
	if status, got := edge.thumbnail(t, key, "alone"); status != 200 || len(got) == 0 {
		t.Errorf("of what the edge has analysed: %d, %d bytes", status, len(got))
	}
	command(t, binary, "doctor", "--data", own) // what is the origin's to send is not missing

	// The picture of a write that the origin does not have is nowhere else.
	file := pictureFile(t, own, "alone", photo(t, names[2]))
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := try(t, binary, "doctor", "--data", own); code != 1 || !strings.Contains(stdout, `input "alone": picture`) {
		t.Errorf("doctor without the picture of a write that waits: %d\n%s", code, stdout)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	way.set(false)
	until(t, "what was not here comes with the origin", func() bool {
		status, _ := edge.thumbnail(t, key, "unseen")
		return status == 200
	})
	edge.terminate(t)
	hub.terminate(t)

	// A damaged picture that the origin has is not lost: it is deleted and fetched again.
	file = pictureFile(t, own, "seen", photo(t, names[0]))
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if report := command(t, binary, "doctor", "--data", own); !strings.Contains(report, "harmless: pictures") {
		t.Errorf("doctor with a damaged picture of the origin's:\n%s", report)
	}
	command(t, binary, "doctor", "--data", own, "--repair")
	if report := command(t, binary, "doctor", "--data", own, "--quiet"); report != "" {
		t.Errorf("after the repair:\n%s", report)
	}
}
