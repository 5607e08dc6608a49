package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"
)

// hostedURLs adds the hosted picture of an application to the same application and to another one of the edge, by its URL. The first one
// stores the original, the other one stores what the URL serves. After the deletion of an application its predicted picture is not served.
func hostedURLs(t *testing.T, binary string) {
	const place = "48.8584N,2.2945E"
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 32)), nil); err != nil {
		t.Fatal(err)
	}
	exif := "Exif\x00\x00II*\x00\x08\x00\x00\x00" + place
	photo := "\xff\xd8\xff\xe1\x00" + string(rune(2+len(exif))) + exif + b.String()[2:]
	encoded := base64.StdEncoding.EncodeToString([]byte(photo))
	hash := func(picture string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(picture))) }

	data := folder(t, binary)
	ownerID, ownerKey, _ := owner(t, binary, data, "owner")
	_, strangerKey, _ := owner(t, binary, data, "stranger")
	srv := serve(t, binary, data)
	all := map[string]*client{"owner": srv.as(t, ownerKey), "stranger": srv.as(t, strangerKey)}
	all["owner"].must("POST", "/v2/inputs", object{"inputs": []object{input("a", encoded)}})
	source := func(name, id string) object {
		return at(t, all[name].must("GET", "/v2/inputs/"+id+"/source", nil), "source").(object)
	}
	url := source("owner", "a")["picture"].(string)
	predicted := at(t, all["owner"].must("POST", "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", object{
		"inputs": []object{{"data": object{"image": object{"base64": encoded}}}},
	}), "outputs", 0, "input", "data", "image", "url").(string)
	path := func(url string) string { return url[strings.Index(url, "/hosted/"):] }
	public := get(t, srv.base+path(url), 200)
	if strings.Contains(public, place) || len(public) != len(photo) {
		t.Fatalf("the URL serves %d bytes of %d, place in them: %v", len(public), len(photo), strings.Contains(public, place))
	}
	for name, want := range map[string]string{"owner": hash(photo), "stranger": hash(public)} {
		for id, url := range map[string]string{"input": url, "predicted": predicted} {
			all[name].must("POST", "/v2/inputs", object{"inputs": []object{{"id": id, "data": object{"image": object{"url": url, "allow_duplicate_url": true}}}}})
			until(t, "the picture is stored", func() bool { return source(name, id)["sha256"] != nil })
			if got := source(name, id); got["sha256"] != want {
				t.Errorf("%s of %s: %v, want %s", id, name, got["sha256"], want)
			}
			if name == "stranger" {
				get(t, srv.base+path(source(name, id)["picture"].(string))+"/"+hash(photo), 404)
			}
		}
	}
	get(t, srv.base+path(predicted), 200)
	command(t, binary, "app", "delete", ownerID, "--yes", "--data", data)
	get(t, srv.base+path(predicted), 404)
	srv.terminate(t)
	srv = serve(t, binary, data)
	get(t, srv.base+path(predicted), 404)
	srv.terminate(t)
}
