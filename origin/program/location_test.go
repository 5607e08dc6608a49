package program

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// place is a location in the metadata of a photo.
const place = "48.8584N,2.2945E"

// filmWithPlace is an MP4 file with a location, which the fake decoder accepts.
const filmWithPlace = "\x00\x00\x00\x14ftypisom\x00\x00\x02\x00mp41" + "\x00\x00\x00\x28moov\x00\x00\x00\x20udta\x00\x00\x00\x18\xa9xyz" + place

// photoOf returns a JPEG file with a location in its Exif and its XMP.
func photoOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 32)), nil); err != nil {
		t.Fatal(err)
	}
	file := []byte("\xff\xd8")
	for _, part := range []string{"Exif\x00\x00II*\x00\x08\x00\x00\x00" + place, "http://ns.adobe.com/xap/1.0/\x00" + place} {
		file = append(file, 0xff, 0xe1, 0, byte(2+len(part)))
		file = append(file, part...)
	}
	return append(file, b.Bytes()[2:]...)
}

// hostedAnswer is the answer to a GET of a hosted picture.
type hostedAnswer struct {
	status int
	body   []byte
	header http.Header
}

func askFor(t *testing.T, client *http.Client, url, known string) (a hostedAnswer) {
	t.Helper()
	req, err := http.NewRequest("GET", url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if known != "" {
		req.Header.Set("If-None-Match", known)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if a.body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	if int64(len(a.body)) != res.ContentLength && res.StatusCode == 200 {
		t.Errorf("%d bytes, and Content-Length %d", len(a.body), res.ContentLength)
	}
	a.status, a.header = res.StatusCode, res.Header
	return a
}

// TestHostedPicturesHaveNoLocation adds a photo that has the location where it was taken. The public URL shows it without the location,
// unless a setting keeps it. Callers who may read the input, and exports, get the original. For a deleted picture every cache gets 404.
func TestHostedPicturesHaveNoLocation(t *testing.T) {
	photo := photoOf(t)
	sum := sha256.Sum256(photo)
	for _, keepLocation := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep %v", keepLocation), func(t *testing.T) {
			s := testSettings(t)
			s.KeepLocation = keepLocation
			_, base := startOrigin(t, s)
			client := own(t)
			body := fmt.Sprintf(`{"inputs":[{"id":"a","data":{"image":{"base64":%q}}}]}`, base64.StdEncoding.EncodeToString(photo))
			res, err := client.Post(base+"/v2/inputs", "application/json", strings.NewReader(body))
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("add: %v %v", res, err)
			}
			_ = res.Body.Close()
			res, err = client.Get(base + "/v2/inputs/a/source")
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			var answer struct {
				Source struct{ Picture, SHA256 string }
			}
			decode(t, string(b), &answer)
			address := base + answer.Source.Picture[strings.Index(answer.Source.Picture, "/hosted/"):]

			public := askFor(t, client, address, "")
			if public.status != 200 || len(public.body) != len(photo) || bytes.Contains(public.body, []byte(place)) == !keepLocation || bytes.Equal(public.body, photo) != keepLocation {
				t.Errorf("the public picture: %d, %d bytes of %d, place in it: %v", public.status, len(public.body), len(photo), bytes.Contains(public.body, []byte(place)))
			}
			if _, err := jpeg.Decode(bytes.NewReader(public.body)); err != nil {
				t.Error(err)
			}
			tag := public.header.Get("ETag")
			if revalidation := askFor(t, client, address, tag); tag == "" || revalidation.status != 304 || len(revalidation.body) != 0 {
				t.Errorf("asked again with %s: %d, %d bytes", tag, revalidation.status, len(revalidation.body))
			}
			original := address + "/" + hex.EncodeToString(sum[:])
			if got := askFor(t, client, original, ""); got.status != 200 || !bytes.Equal(got.body, photo) {
				t.Errorf("the original: %d, %d bytes", got.status, len(got.body))
			}
			wrong := sha256.Sum256([]byte("another"))
			if got := askFor(t, client, address+"/"+hex.EncodeToString(wrong[:]), ""); got.status != 404 {
				t.Errorf("the original under another hash: %d", got.status)
			}
			archive := filepath.Join(t.TempDir(), "export.zip")
			mustRun(t, "export", archive, "--url", base, "--key", keyOf(strings.TrimPrefix(base, "http://")))
			exported, err := zip.OpenReader(archive)
			if err != nil {
				t.Fatal(err)
			}
			defer exported.Close()
			found := false
			for _, f := range exported.File {
				r, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(r)
				_ = r.Close()
				found = found || bytes.Equal(b, photo)
			}
			if !found {
				t.Error("the export does not have the original")
			}

			req, _ := http.NewRequest("DELETE", base+"/v2/inputs/a", http.NoBody)
			if res, err = client.Do(req); err != nil || res.StatusCode != 200 {
				t.Fatalf("delete: %v %v", res, err)
			}
			_ = res.Body.Close()
			for _, url := range []string{address, original, address + "/thumbnail"} {
				if got := askFor(t, client, url, tag); got.status != 404 {
					t.Errorf("%s of a deleted picture: %d", url, got.status)
				}
			}
		})
	}
}

// TestHostedVideosHaveNoLocation predicts a film that has the location where it was taken. Its public URL shows it without the location,
// unless a setting keeps it.
func TestHostedVideosHaveNoLocation(t *testing.T) {
	film := []byte(filmWithPlace)
	for _, keepLocation := range []bool{false, true} {
		s := testSettings(t)
		s.KeepLocation, s.VideoDecoder = keepLocation, fakeDecoder(t, "", "")
		_, base := startOrigin(t, s)
		client := own(t)
		body := fmt.Sprintf(`{"inputs":[{"data":{"video":{"base64":%q}}}]}`, base64.StdEncoding.EncodeToString(film))
		res, err := client.Post(base+"/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var answer struct {
			Outputs []struct {
				Input struct {
					Data struct{ Video struct{ URL string } }
				}
			}
		}
		decode(t, string(b), &answer)
		if len(answer.Outputs) != 1 || !strings.Contains(answer.Outputs[0].Input.Data.Video.URL, "/hosted/") {
			t.Fatalf("predict: %d %s", res.StatusCode, b)
		}
		address := answer.Outputs[0].Input.Data.Video.URL
		public := askFor(t, client, base+address[strings.Index(address, "/hosted/"):], "")
		if public.status != 200 || len(public.body) != len(film) || bytes.Contains(public.body, []byte(place)) != keepLocation || bytes.Equal(public.body, film) != keepLocation {
			t.Errorf("the public video, keep %v: %d %q", keepLocation, public.status, public.body)
		}
	}
}
