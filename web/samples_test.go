package web

import (
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEverySampleIsCredited(t *testing.T) {
	credits, err := Credits()
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string]Credit{}
	for _, c := range credits {
		if c.Author == "" || c.Page == "" || !strings.HasPrefix(c.Licence, "CC BY") {
			t.Errorf("%s: author %q, page %q, licence %q: want all three, and a licence that allows shipping", c.File, c.Author, c.Page, c.Licence)
		}
		for _, text := range []string{c.Title, c.Author, c.Place} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\\\uFFFD") {
				t.Errorf("%s: %q is written in escapes, or not in UTF-8", c.File, text)
			}
		}
		if c.Latitude < -90 || c.Latitude > 90 || c.Longitude < -180 || c.Longitude > 180 {
			t.Errorf("%s lies at %v, %v", c.File, c.Latitude, c.Longitude)
		}
		byFile[c.File] = c
	}
	files, err := fs.Glob(Samples(), "*.jpg")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := byFile[f]; !ok {
			t.Errorf("%s has no credit", f)
		}
	}
	if got := byFile["10-bee-on-a-petal.jpg"].Author; got != "Esin Üstün" {
		t.Errorf("the bee is by %q", got)
	}
	if len(files) != len(byFile) {
		t.Errorf("%d samples, %d credits", len(files), len(byFile))
	}
}
