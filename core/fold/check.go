package fold

import (
	"math"
	"unicode/utf8"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// maxID is the maximum number of bytes of an id. The limit for requests is lower.
const maxID = 1024

// isID reports whether s is a valid id.
func isID(s string) bool { return s != "" && len(s) <= maxID && utf8.ValidString(s) }

// orNone reports whether s is a valid id or empty.
func orNone(s string) bool { return s == "" || isID(s) }

func areIDs(list []string) bool {
	for _, s := range list {
		if !isID(s) {
			return false
		}
	}
	return true
}

func areLabels(labels []log.Label) bool {
	for _, l := range labels {
		if !isID(l.Concept) || l.Value > log.True {
			return false
		}
	}
	return true
}

// isCrop reports whether c is a part of a picture, or the whole picture.
func isCrop(c raster.Crop) bool {
	return c == (raster.Crop{}) || 0 <= c.Top && c.Top < c.Bottom && c.Bottom <= 1 && 0 <= c.Left && c.Left < c.Right && c.Right <= 1
}

// isPlace reports whether p is nil or has valid coordinates.
func isPlace(p *log.Point) bool {
	return p == nil || math.Abs(p.Longitude) <= 180 && math.Abs(p.Latitude) <= 90
}

func isJSON(data []byte) bool {
	var d jsonio.Doc
	return d.Parse(data, jsonio.Limits{}) == nil
}

func areSettings(settings []log.Setting) bool {
	for _, s := range settings {
		if !isID(s.Name) || s.JSON != nil && !isJSON(s.JSON) {
			return false
		}
	}
	return true
}

func areEdits(edits []log.OutputEdit) bool {
	for _, x := range edits {
		if !isID(x.Concept) || !(x.Value >= 0 && x.Value <= 1) {
			return false
		}
	}
	return true
}
