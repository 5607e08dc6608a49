package program

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/exif/exiftest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// datedInput is the part of an input that comes from its file.
type datedInput struct {
	ID   string
	Data struct {
		Geo *struct {
			Point struct{ Longitude, Latitude float64 } `json:"geo_point"`
		}
		Taken *struct {
			Local, Source string
			Offset        *int
		}
	}
}

// String returns date and place.
func (in *datedInput) String() string {
	s := ""
	if d := in.Data.Taken; d != nil {
		s += d.Local
		if d.Offset != nil {
			s += fmt.Sprintf(" %+d", *d.Offset)
		}
	}
	if g := in.Data.Geo; g != nil {
		s += fmt.Sprintf(" at %v, %v", g.Point.Latitude, g.Point.Longitude)
	}
	return s
}

// datesOf returns the dates and places of a data folder's inputs, by ID.
func datesOf(t testing.TB, data string) map[string]string {
	t.Helper()
	s := testSettings(t)
	s.Data = data
	srv, base := startOrigin(t, s)
	var answer struct{ Inputs []datedInput }
	code, _, body := get(t, own(t), base+"/v2/inputs?per_page=1000&show=taken")
	if decode(t, string(body), &answer); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for i := range answer.Inputs {
		found[answer.Inputs[i].ID] = answer.Inputs[i].String()
	}
	return found
}

// TestImportDatesAndPlaces imports photos with a date and a place. The date always counts. The place counts unless --no-location or a list
// says something else, and an export keeps what its application had.
func TestImportDatesAndPlaces(t *testing.T) {
	testkit.SkipRace(t)
	dir := t.TempDir()
	tags := exiftest.Tags{Original: "2019:07:21 23:06:38", OriginalOffset: "-09:00", Place: []float64{47.5, -12.25}}
	photo := exiftest.JPEG(sample(t, "09-sea-turtle.jpg"), exiftest.EXIF(binary.BigEndian, tags), nil)
	rewrite(t, filepath.Join(dir, "photo.jpg"), string(photo))
	rewrite(t, filepath.Join(dir, "plain.jpg"), string(sample(t, "26-green-roadster.jpg")))
	list := filepath.Join(t.TempDir(), "list.jsonl")
	lines := ""
	for id, rest := range map[string]string{"own": `,"geo":{"longitude":1,"latitude":2}`, "file": ``} {
		lines += fmt.Sprintf("{\"id\":%q,\"path\":%q%s}\n", id, filepath.Join(dir, "photo.jpg"), rest)
	}
	rewrite(t, list, lines)
	const date, place = "2019-07-21T23:06:38 -540", " at 47.5, -12.25"
	data, without := newFolder(t), newFolder(t)
	importSum(t, 0, dir, "--data", data)
	importSum(t, 0, list, "--data", data)
	importSum(t, 0, dir, "--data", without, "--no-location")
	for data, want := range map[string]map[string]string{
		data:    {"photo.jpg": date + place, "plain.jpg": "", "own": date + " at 2, 1", "file": date + place},
		without: {"photo.jpg": date, "plain.jpg": ""},
	} {
		if got := datesOf(t, data); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("dates and places %v, want %v", got, want)
		}
	}
	export, copied := filepath.Join(t.TempDir(), "out"), newFolder(t)
	mustRun(t, "export", export, "--data", without)
	importSum(t, 0, export, "--data", copied)
	if got := datesOf(t, copied); got["photo.jpg"] != date {
		t.Errorf("the copy of an export has %v", got)
	}
}

// TestImportFieldDate imports the photo of the field test.
func TestImportFieldDate(t *testing.T) {
	testkit.SkipRace(t)
	b, err := os.ReadFile(testkit.DataPath(t, "field", "import", "place-and-date.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	dir, data := t.TempDir(), newFolder(t)
	rewrite(t, filepath.Join(dir, "a.jpg"), string(b))
	importSum(t, 0, dir, "--data", data)
	if got := datesOf(t, data)["a.jpg"]; got != "2019-07-21T23:06:38 -540 at 47.5, -12.25" {
		t.Errorf("the photo is of %q", got)
	}
}
