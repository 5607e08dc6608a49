package predict

import (
	"encoding/binary"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/predict/raster/exif/exiftest"
)

// TestExif: the metadata of a file come with the other parts of its analysis, or alone and then without its pixels.
func TestExif(t *testing.T) {
	a := tinySet(t).NewAnalyser(raster.Limits{})
	block := exiftest.EXIF(binary.BigEndian, exiftest.Tags{Original: "2019:07:21 23:06:38", Place: []float64{47.5, -12.25}})
	want := exif.Data{Taken: exif.Time{Wall: 1563750398, Known: true}, Place: exif.Place{Longitude: -12.25, Latitude: 47.5}}
	picture, planes := jpegAndPlanes(t)
	planes.Exif = want
	file := exiftest.JPEG(picture, block, nil)
	for _, w := range []Want{WantExif, WantExif | WantThumb, WantThumb} {
		for name, analyse := range map[string]func() (Analysis, error){
			"file":   func() (Analysis, error) { return a.Analyse(file, raster.Crop{}, w) },
			"planes": func() (Analysis, error) { return a.AnalysePlanes(planes, raster.Crop{}, w) },
		} {
			expected := want
			if w&WantExif == 0 {
				expected = exif.Data{}
			}
			if got, err := analyse(); err != nil || got.Has != w || got.Exif != expected {
				t.Errorf("%s, %b: has %b, %+v, %v", name, w, got.Has, got.Exif, err)
			}
		}
	}
	if got, err := a.Analyse(exiftest.HEIF(block), raster.Crop{}, WantExif); err != nil || got.Exif != want || WantExif.NeedsPixels() {
		t.Errorf("a HEIC: %+v, %v", got.Exif, err)
	}
}
