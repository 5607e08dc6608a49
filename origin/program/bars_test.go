package program

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
)

// phonePhoto returns a JPEG with the structure of a camera's: 4:2:0, quality 85, gradients and grain.
func phonePhoto(t testing.TB, width, height int) []byte {
	t.Helper()
	img := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	seed := uint32(width*31 + height)
	for y := range height {
		row := img.Y[y*img.YStride : y*img.YStride+width]
		for x := range row {
			seed = seed*1664525 + 1013904223
			row[x] = byte(60 + 100*x/width + 40*y/height + int(seed>>28))
		}
	}
	for i := range img.Cb {
		img.Cb[i], img.Cr[i] = byte(110+i%32), byte(140-i%24)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 85}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPhotosGetTheirLabels runs the command on real photos. For at least 78 % of them a correct label is among the first five concepts.
func TestPhotosGetTheirLabels(t *testing.T) {
	testkit.SkipRace(t)
	dir := testkit.DataPath(t, "photos")
	f, err := os.Open(filepath.Join(dir, "labels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"predict", "--json", "--top", "5", "--quiet"}
	for _, row := range rows[1:] {
		args = append(args, filepath.Join(dir, row[0]))
	}
	code, stdout, stderr := run(t, nil, args...)
	if code != 0 {
		t.Fatalf("predict: %d\n%s", code, stderr)
	}
	hits, lines := 0, strings.Split(strings.TrimSpace(stdout), "\n")
	for i, line := range lines {
		var out struct {
			Data struct{ Concepts []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(line), &out); err != nil {
			t.Fatal(err)
		}
		labels := strings.Split(rows[1+i][1], "|")
		for _, c := range out.Data.Concepts {
			if slices.Contains(labels, c.Name) {
				hits++
				break
			}
		}
	}
	t.Logf("a true label among the first five: %d of %d", hits, len(lines))
	if len(lines) != len(rows)-1 || hits*100 < 78*len(lines) {
		t.Errorf("a true label among the first five for %d of %d photos, want 78 %%", hits, len(lines))
	}
}

// TestThousandPredictionsNeedLittleMemory limits the program's resident memory over 1,000 pictures of mixed sizes up to 12 MP.
func TestThousandPredictionsNeedLittleMemory(t *testing.T) {
	const n, limit = 1000, 200 << 20
	testkit.RequireTiming(t)
	dir := t.TempDir()
	var files []string
	for i, size := range [][2]int{{320, 240}, {640, 480}, {1024, 1024}, {1152, 864}, {2016, 1512}, {1600, 2400}, {800, 600}, {4032, 3024}} {
		path := filepath.Join(dir, fmt.Sprintf("%d.jpg", i))
		if err := os.WriteFile(path, phonePhoto(t, size[0], size[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	args := []string{"predict", "--json", "--quiet"}
	for i := range n {
		args = append(args, files[i%len(files)])
	}
	cmd := exec.Command(os.Args[0], args...)
	status := filepath.Join(dir, "status")
	cmd.Env = append(os.Environ(), asServer+"=1", lastStatus+"="+status)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(out, []byte("\n")); got != n {
		t.Errorf("%d answers, want %d", got, n)
	}
	_, peak := memoryIn(t, status)
	t.Logf("%d predictions: %d MiB resident at the peak", n, peak>>20)
	if peak > limit {
		t.Errorf("%d MiB resident at the peak, want at most %d", peak>>20, limit>>20)
	}
}

// TestPhonePhotosByURL predicts 128 photos of 12 MP by URL in one call, and one of 108 MP.
func TestPhonePhotosByURL(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes 1,600 megapixels")
	}
	phone, huge := phonePhoto(t, 4032, 3024), phonePhoto(t, 12000, 9000)
	if len(huge) >= 20_000_000 {
		t.Fatalf("the picture of 108 MP has %d bytes", len(huge))
	}
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		picture := phone
		if r.URL.Path == "/huge.jpg" {
			picture = huge
		}
		_, _ = io.Copy(w, bytes.NewReader(picture))
	}))
	defer pictures.Close()
	s := testSettings(t)
	s.AllowPrivate = true
	_, base := startOrigin(t, s)
	client := own(t)
	client.Timeout = 5 * time.Minute

	urls := make([]string, testkit.Size(t, 16, 16, 128, 128))
	for i := range urls {
		urls[i] = fmt.Sprintf("%s/%d.jpg", pictures.URL, i)
	}
	for _, call := range [][]string{urls, {pictures.URL + "/huge.jpg"}} {
		code, out := predictBy(t, client, base, generalID, byURL(call...))
		if code != http.StatusOK || len(out.Outputs) != len(call) {
			t.Fatalf("%d pictures: HTTP %d, %+v, %d outputs", len(call), code, out.Status, len(out.Outputs))
		}
		for i, o := range out.Outputs {
			if o.Status.Code != 10000 || len(o.Data.Concepts) == 0 {
				t.Errorf("%s: %+v with %d concepts", call[i], o.Status, len(o.Data.Concepts))
			}
		}
	}
}
