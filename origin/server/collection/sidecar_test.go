package collection

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// TestSidecarNames finds the pictures of sidecars by names as photo programs and Google Takeout write them.
func TestSidecarNames(t *testing.T) {
	long := "PXL_20230102_030405678.PORTRAIT-01.COVER.edited.again.jpg"
	var pictures []FoundFile
	for _, name := range []string{
		"a/IMG_1.jpg", "a/IMG_1.CR2", "a/IMG_1(2).jpg", "a/IMG_10.jpg", "a/b/IMG_1.jpg", "a/é.jpg", "a/" + long, "a/" + long[:46] + ".other.jpg", "IMG_1.jpg",
	} {
		pictures = append(pictures, FoundFile{Name: name, Path: name})
	}
	n := newNeighbours(pictures)
	for sidecar, want := range map[string][]string{
		"a/IMG_1.jpg.xmp":  {"a/IMG_1.jpg"},
		"a/img_1.JPG.XMP":  {"a/IMG_1.jpg"},
		"a/IMG_1.xmp":      {"a/IMG_1.jpg", "a/IMG_1.CR2"},
		"a/IMG_10.xmp":     {"a/IMG_10.jpg"},
		"a/IMG_2.xmp":      nil,
		"a/IMG_1.jpg.json": {"a/IMG_1.jpg"},
		"IMG_1.jpg.json":   {"IMG_1.jpg"},
		"a/b/IMG_1.jpg.supplemental-metadata.json":  {"a/b/IMG_1.jpg"},
		"a/é.jpg.supplem.json":                      {"a/é.jpg"},
		"a/IMG_1.jpg(2).json":                       {"a/IMG_1(2).jpg"},
		"a/IMG_1.jpg.supplemental-metadata(2).json": {"a/IMG_1(2).jpg"},
		"a/IMG_1.json":                              nil,
		"a/metadata.json":                           nil,
		"a/IMG_1.jpg(3).json":                       nil,
		"a/" + long[:46] + ".json":                  {"a/" + long[:46] + ".other.jpg", "a/" + long},
	} {
		got := n.of(sidecar)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s is of %q, want %q", sidecar, got, want)
		}
	}
}

const xmpSidecar = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
 exif:DateTimeOriginal="2019-07-21T23:06:38-09:00" exif:GPSLatitude="47,30.0N" exif:GPSLongitude="12,15.0W">
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">A boat &amp; a bird</rdf:li><rdf:li xml:lang="de">Ein Boot</rdf:li></rdf:Alt></dc:description>
<dc:subject><rdf:Bag><rdf:li>bird</rdf:li><rdf:li> sea </rdf:li><rdf:li/><rdf:li>bird</rdf:li></rdf:Bag></dc:subject>
<lr:hierarchicalSubject><rdf:Bag><rdf:li>animal|bird</rdf:li></rdf:Bag></lr:hierarchicalSubject>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>`

// TestSidecarContents reads XMP and the JSON of Google Takeout, complete and damaged.
func TestSidecarContents(t *testing.T) {
	place := exif.Place{Latitude: 47.5, Longitude: -12.25}
	all := Sidecar{Taken: "2019-07-21T23:06:38-09:00", Description: "A boat & a bird", Keywords: []string{"bird", "sea"}, Place: place}
	for name, tt := range map[string]struct {
		content string
		want    Sidecar
		fails   bool
	}{
		"all.xmp":      {xmpSidecar, all, false},
		"cut.xmp":      {xmpSidecar[:len(xmpSidecar)-120], Sidecar{}, true},
		"long.xmp":     {strings.Replace(xmpSidecar, " sea ", strings.Repeat("é", 70), 1), Sidecar{Taken: all.Taken, Description: all.Description, Keywords: []string{"bird", strings.Repeat("é", 64)}, Place: place}, false},
		"empty.xmp":    {"", Sidecar{}, false},
		"large.xmp":    {xmpSidecar + strings.Repeat(" ", maxSidecar), Sidecar{}, true},
		"all.json":     {`{"title":"x.jpg","description":" A boat ","photoTakenTime":{"timestamp":"1563782798","formatted":"x"},"geoData":{"latitude":47.5,"longitude":-12.25,"altitude":0.0}}`, Sidecar{Taken: "2019-07-22T08:06:38+00:00", Description: "A boat", Place: place}, false},
		"exif.json":    {`{"geoData":{"latitude":0.0,"longitude":0.0},"geoDataExif":{"latitude":47.5,"longitude":-12.25}}`, Sidecar{Place: place}, false},
		"wrong.json":   {`{"photoTakenTime":{"timestamp":"-99999999999999"},"geoData":{"latitude":97.5,"longitude":1}}`, Sidecar{}, false},
		"cut.json":     {`{"photoTakenTime":`, Sidecar{}, true},
		"numbers.json": {`{"description":7}`, Sidecar{}, true},
	} {
		got, err := readSidecar(fstest.MapFS{name: {Data: []byte(tt.content)}}, name)
		if (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestSidecars reads a folder with sidecars, with and without them. A sidecar that cannot be read is named, and its picture is read.
func TestSidecars(t *testing.T) {
	picture := &fstest.MapFile{Data: []byte("picture")}
	files := fstest.MapFS{
		"bird/a.jpg": picture, "bird/a.xmp": {Data: []byte(xmpSidecar)}, "bird/a.jpg.json": {Data: []byte(`{"description":"another","photoTakenTime":{"timestamp":"0"}}`)},
		"b.jpg": picture, "b-edited.jpg": picture, "b.jpg.supplemental-meta.json": {Data: []byte(`{"description":"b","photoTakenTime":{"timestamp":"0"}}`)},
		"c.jpg": picture, "c.jpg.xmp": {Data: []byte("<x>")},
		"metadata.json": {Data: []byte("{}")}, "d.aae": {Data: []byte("x")},
	}
	type seen struct{ Concepts, Metadata, Geo, Err string }
	read := func(o Options) (map[string]seen, int) {
		s := open(t, files, "", o)
		got := map[string]seen{}
		for _, in := range all(t, s) {
			var ids []string
			for _, c := range in.Concepts {
				ids = append(ids, c.ID)
			}
			one := seen{Concepts: strings.Join(ids, " "), Metadata: string(in.Metadata), Geo: string(in.Geo)}
			if in.Err != nil {
				one.Err = in.Err.Error()
			}
			got[in.Name] = one
		}
		return got, s.LeftOut()[Sidecars]
	}
	none := map[string]seen{"bird/a.jpg": {}, "b.jpg": {}, "b-edited.jpg": {}, "c.jpg": {}}
	got, leftOut := read(Options{})
	if d := cmp.Diff(none, got); d != "" || leftOut != 6 {
		t.Errorf("%d left out (-want +got):\n%s", leftOut, d)
	}
	b := seen{Metadata: `{"taken":"1970-01-01T00:00:00+00:00","description":"b"}`}
	want := map[string]seen{
		"bird/a.jpg": {Concepts: "bird sea", Metadata: `{"taken":"2019-07-21T23:06:38-09:00","description":"A boat & a bird"}`, Geo: `{"geo_point":{"latitude":47.5,"longitude":-12.25}}`},
		"b.jpg":      b, "b-edited.jpg": b, "c.jpg": {}, "c.jpg.xmp": {Err: "XMP: XML syntax error on line 1: unexpected EOF"},
	}
	if got, leftOut = read(Options{Sidecars: true, FolderConcepts: true}); !cmp.Equal(want, got) || leftOut != 2 {
		t.Errorf("%d left out (-want +got):\n%s", leftOut, cmp.Diff(want, got))
	}
	if got, _ = read(Options{Sidecars: true, NoPlaces: true}); got["bird/a.jpg"].Geo != "" || got["bird/a.jpg"].Concepts != "bird sea" {
		t.Errorf("without places: %+v", got["bird/a.jpg"])
	}
}
