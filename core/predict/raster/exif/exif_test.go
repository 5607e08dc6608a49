package exif_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/predict/raster/exif/exiftest"
	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

// text returns a time as a person reads it, or "" for an unknown one.
func text(t exif.Time) string {
	switch {
	case t == exif.Time{}:
		return ""
	case t.HasOffset:
		return fmt.Sprintf("%s %+d", time.Unix(t.Wall, 0).UTC().Format("2006-01-02T15:04:05"), t.Offset)
	}
	return time.Unix(t.Wall, 0).UTC().Format("2006-01-02T15:04:05")
}

const (
	jpeg = "\xff\xd8\xff\xda\x00\x02\xff\xd9"
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55"
	webp = "RIFF\x04\x00\x00\x00WEBP"
)

// TestDates checks which date counts, in the form of each date. Nothing but the file matters.
func TestDates(t *testing.T) {
	type tags = exiftest.Tags
	for _, tt := range []struct {
		tags
		want string
	}{
		{tags{Original: "2019:07:21 23:06:38", OriginalOffset: "-09:00"}, "2019-07-21T23:06:38 -540"},
		{tags{Original: "2019:07:21 23:06:38"}, "2019-07-21T23:06:38"},
		{tags{Original: "2019:07:21 23:06:38", ChangedOffset: "+01:00", DigitizedOffset: "+02:00"}, "2019-07-21T23:06:38"},
		{tags{Original: "2019:07:21 23:06:38", Digitized: "2020:01:01 00:00:00", Changed: "2021:01:01 00:00:00"}, "2019-07-21T23:06:38"},
		{tags{Digitized: "2020:01:01 00:00:00", DigitizedOffset: "+05:45", Changed: "2021:01:01 00:00:00"}, "2020-01-01T00:00:00 +345"},
		{tags{Changed: "2021:01:01 23:59:59", ChangedOffset: "Z"}, "2021-01-01T23:59:59 +0"},
		{tags{Changed: "2021:01:01 23:59:59", OriginalOffset: "+03:00"}, "2021-01-01T23:59:59"},
		{tags{Original: "1970:01:01 00:00:00"}, "1970-01-01T00:00:00"},
		{tags{Original: "1969:12:31 23:59:59", OriginalOffset: "+14:00"}, "1969-12-31T23:59:59 +840"},
		{tags{Original: "1935:05:04 12:00:00"}, "1935-05-04T12:00:00"},
		{tags{Original: "2038:01:19 03:14:08"}, "2038-01-19T03:14:08"},
		{tags{Original: "2106:02:07 06:28:16"}, "2106-02-07T06:28:16"},
		{tags{Original: "9999:12:31 23:59:59"}, "9999-12-31T23:59:59"},
		{tags{Original: "2020:02:29 10:00:00"}, "2020-02-29T10:00:00"},
		{tags{Original: "2019:07:21"}, "2019-07-21T12:00:00"},
		{tags{Original: "2019:07:21 23:06"}, "2019-07-21T23:06:00"},
		{tags{Original: "2019-07-21T23:06:38.125+02:00"}, "2019-07-21T23:06:38 +120"},
		{tags{Original: "2019/07/21 3:06:38 "}, "2019-07-21T03:06:38"},
		{tags{Original: "2019:07:21 23:06:38", OriginalOffset: "   :  "}, "2019-07-21T23:06:38"},
		{tags{Original: "2019:07:21 23:06:38", OriginalOffset: "+99:00"}, "2019-07-21T23:06:38"},
		{tags{Original: "2019:07:21 23:06:38", OriginalOffset: "+02:75"}, "2019-07-21T23:06:38"},
		// Broken dates count as missing.
		{tags{Original: "0000:00:00 00:00:00", Digitized: "2020:01:01 00:00:00"}, "2020-01-01T00:00:00"},
		{tags{Original: "    :  :     :  :  ", Changed: "2020:01:01 00:00:00"}, "2020-01-01T00:00:00"},
		{tags{Original: "2019:02:30 10:00:00", Changed: "2020:01:01 00:00:00"}, "2020-01-01T00:00:00"},
		{tags{Original: "2019:02:29 10:00:00"}, ""},
		{tags{Original: "2019:13:01 10:00:00"}, ""},
		{tags{Original: "2019:07:21 24:00:00"}, ""},
		{tags{Original: "2019:07:21 23:60:00"}, ""},
		{tags{Original: "2019:07:21 23:06:61"}, ""},
		{tags{Original: "2019:07"}, ""},
		{tags{Original: "21.07.2019 23:06:38"}, ""},
		{tags{Original: "yesterday"}, ""},
		{tags{Original: "0000:01:01 10:00:00"}, ""},
		{tags{}, ""},
	} {
		for _, order := range []exiftest.Order{binary.LittleEndian, binary.BigEndian} {
			b := exiftest.EXIF(order, tt.tags)
			if got := exif.Read(exiftest.JPEG([]byte(jpeg), b, nil)); text(got.Taken) != tt.want {
				t.Errorf("%+v: date %q, want %q", tt.tags, text(got.Taken), tt.want)
			}
		}
	}
}

// TestPhotos reads photos with dates of every kind in several zones of the host.
func TestPhotos(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)} {
		time.Local = zone
		for _, p := range exiftest.Photos() {
			want := p.Local
			if p.Offset != exiftest.NoOffset {
				want += fmt.Sprintf(" %+d", p.Offset)
			}
			if got := text(exif.Read(p.File).Taken); got != want {
				t.Errorf("%s in %v: date %q, want %q", p.Name, zone, got, want)
			}
		}
	}
}

// TestFormats checks the date and the place in each format.
func TestFormats(t *testing.T) {
	tags := exiftest.Tags{Original: "2019:07:21 23:06:38", OriginalOffset: "-09:00", Changed: "2022:01:01 00:00:00", Place: []float64{47.5, -12.25}}
	b := exiftest.EXIF(binary.BigEndian, tags)
	le := exiftest.EXIF(binary.LittleEndian, tags)
	packet := exiftest.XMP("exif:DateTimeOriginal", "2019-07-21T23:06:38-09:00", "exif:GPSLatitude", "47,30.0N", "exif:GPSLongitude", "12,15,0W")
	elements := []byte("<rdf:RDF><rdf:Description><exif:GPSLatitudeRef>N</exif:GPSLatitudeRef><exif:GPSLatitude>47,30N</exif:GPSLatitude>" +
		"<exif:GPSLongitude>12,15W</exif:GPSLongitude><photoshop:DateCreated> 2019-07-21T23:06:38-09:00 </photoshop:DateCreated></rdf:Description></rdf:RDF>")
	profile := []byte(strings.ToUpper(hex.EncodeToString(append([]byte("Exif\x00\x00"), b...))))
	profile = fmt.Appendf(nil, "\nexif\n%8d\n%s\n%s\n", len(profile)/2, profile[:72], profile[72:])
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	fmt.Fprintf(w, "%s", profile)
	w.Close()
	olympus := append([]byte("IIRO"), le[4:]...)
	panasonic := append([]byte("IIU\x00"), le[4:]...)
	for name, file := range map[string][]byte{
		"JPEG":                   exiftest.JPEG([]byte(jpeg), b, nil),
		"JPEG, XMP":              exiftest.JPEG([]byte(jpeg), nil, packet),
		"JPEG, XMP of elements":  exiftest.JPEG([]byte(jpeg), nil, elements),
		"JPEG, EXIF before XMP":  exiftest.JPEG([]byte(jpeg), b, exiftest.XMP("xmp:CreateDate", "2000-01-01T00:00:00Z")),
		"JPEG, empty EXIF":       exiftest.JPEG([]byte(jpeg), exiftest.EXIF(binary.LittleEndian, exiftest.Tags{}), packet),
		"PNG, eXIf":              exiftest.PNG([]byte(png), exiftest.Chunk("eXIf", b)),
		"PNG, eXIf as in a JPEG": exiftest.PNG([]byte(png), exiftest.Chunk("eXIf", append([]byte("Exif\x00\x00"), b...))),
		"PNG, tEXt profile":      exiftest.PNG([]byte(png), exiftest.Chunk("tEXt", append([]byte("Raw profile type exif\x00"), profile...))),
		"PNG, zTXt profile":      exiftest.PNG([]byte(png), exiftest.Chunk("zTXt", append([]byte("Raw profile type APP1\x00\x00"), packed.Bytes()...))),
		"PNG, XMP":               exiftest.PNG([]byte(png), exiftest.Chunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"), packet...))),
		"WebP":                   exiftest.WebP([]byte(webp), b, nil),
		"WebP, as in a JPEG":     exiftest.WebP([]byte(webp), append([]byte("Exif\x00\x00"), b...), nil),
		"WebP, XMP":              exiftest.WebP([]byte(webp), nil, packet),
		"TIFF":                   b,
		"TIFF, low byte first":   le,
		"TIFF, XMP":              append(exiftest.EXIF(binary.LittleEndian, exiftest.Tags{}), packet...),
		"HEIC":                   exiftest.HEIF(b),
		"HEIC, as in a JPEG":     exiftest.HEIF(append([]byte("Exif\x00\x00"), b...)),
		"HEIC, XMP":              append(exiftest.HEIF(nil), packet...),
		"JPEG XL":                exiftest.JXL([]byte("\xff\x0a"), b),
		"JPEG XL, XMP":           append(exiftest.JXL([]byte("\xff\x0a"), nil), exiftest.Box("xml ", packet)...),
		"GIF, XMP":               slices.Concat([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00\x21\xff\x0bXMP DataXMP"), packet, []byte(";")),
		"Olympus":                olympus,
		"Panasonic":              panasonic,
		"Minolta":                slices.Concat([]byte("\x00MRM\x00\x00\x00\x00\x00PRD\x00\x00\x00\x02ab\x00TTW\x00\x00\x01\x00"), b),
		"Canon, CR3": slices.Concat(exiftest.Box("ftyp", []byte("crx \x00\x00\x00\x01crx isom")), exiftest.Box("moov", exiftest.Box("uuid",
			[]byte("\x85\xc0\xb6\x87\x82\x0f\x11\xe0\x81\x11\xf4\xce\x46\x2b\x6a\x48"), exiftest.Box("CMT1", exiftest.EXIF(binary.LittleEndian, exiftest.Tags{Changed: tags.Changed})),
			exiftest.Box("CMT2", firstOnly(le, 0x8769)), exiftest.Box("CMT4", firstOnly(le, 0x8825))))),
		"Fujifilm": rawtest.Files(exiftest.JPEG(preview(), b, nil), 1)["raf"],
		"Sigma":    rawtest.Files(exiftest.JPEG(preview(), b, nil), 1)["x3f"],
	} {
		got := exif.Read(file)
		if text(got.Taken) != "2019-07-21T23:06:38 -540" || got.Place != (exif.Place{Longitude: -12.25, Latitude: 47.5}) {
			t.Errorf("%s: %q at %+v", name, text(got.Taken), got.Place)
		}
	}
}

// firstOnly returns EXIF data whose first directory is the one that an entry of the present first directory names.
func firstOnly(b []byte, tag uint16) []byte {
	le := binary.LittleEndian
	out := bytes.Clone(b)
	for at := 10; ; at += 12 {
		if le.Uint16(b[at:]) == tag {
			copy(out[4:], b[at+8:at+12])
			return out
		}
	}
}

// preview returns the headers of a JPEG that readers of camera raw accept.
func preview() []byte {
	return []byte("\xff\xd8\xff\xdb\x00\x43" + strings.Repeat("\x01", 65) + "\xff\xc0\x00\x0b\x08\x01\xe0\x02\x80\x01\x01\x11\x00\xff\xda\x00\x02\xff\xd9")
}

// TestOtherDates checks the dates of PNG, XMP and CRW.
func TestOtherDates(t *testing.T) {
	created := func(s string) []byte {
		return exiftest.PNG([]byte(png), exiftest.Chunk("tEXt", []byte("Creation Time\x00"+s)))
	}
	xmp := func(properties ...string) []byte {
		return exiftest.JPEG([]byte(jpeg), nil, exiftest.XMP(properties...))
	}
	for _, tt := range []struct {
		file []byte
		want string
	}{
		{created("Sun, 21 Jul 2019 23:06:38 -0900"), "2019-07-21T23:06:38 -540"},
		{created("Sun, 21 Jul 2019 23:06:38 GMT"), "2019-07-21T23:06:38 +0"},
		{created("Sun, 21 Jul 2019 23:06:38 CET"), "2019-07-21T23:06:38"},
		{created("2019:07:21 23:06:38"), "2019-07-21T23:06:38"},
		{created("2019-07-21T23:06:38Z"), "2019-07-21T23:06:38 +0"},
		{created("last summer"), ""},
		{exiftest.PNG([]byte(png), exiftest.Chunk("tEXt", []byte("date:create\x002019-07-21T23:06:38+00:00"))), ""}, // the file's time
		{exiftest.PNG([]byte(png), exiftest.Chunk("tIME", []byte{7, 227, 7, 21, 23, 6, 38})), ""},                   // its last change
		{xmp("photoshop:DateCreated", "2019-07-21"), "2019-07-21T12:00:00"},
		{xmp("photoshop:DateCreated", "2019"), ""},
		{xmp("xmp:CreateDate", "2020-01-01T00:00:00Z", "exif:DateTimeOriginal", "2019-07-21T23:06"), "2019-07-21T23:06:00"},
		{xmp("xmp:ModifyDate", "2020-01-01T00:00:00Z"), ""},
		{xmp("exif:DateTimeOriginal", strings.Repeat("2", 500), "xmp:CreateDate", "2020-01-01T00:00:00Z"), "2020-01-01T00:00:00 +0"},
		{crw(1563750398), "2019-07-21T23:06:38"},
		{crw(0), ""},
		{exiftest.JPEG([]byte(jpeg), exiftest.EXIF(binary.LittleEndian, exiftest.Tags{Changed: "2021:01:01 00:00:00"}), exiftest.XMP("exif:DateTimeOriginal", "2019-07-21")), "2021-01-01T00:00:00"},
	} {
		if got := exif.Read(tt.file); text(got.Taken) != tt.want {
			t.Errorf("%.120q: date %q, want %q", tt.file, text(got.Taken), tt.want)
		}
	}
	if got := exif.ReadXMP(exiftest.XMP("exif:DateTimeOriginal", "2019-07-21T23:06:38-09:00")); text(got.Taken) != "2019-07-21T23:06:38 -540" {
		t.Errorf("date of a sidecar %q", text(got.Taken))
	}
}

// crw returns a CRW with a time.
func crw(seconds uint32) []byte {
	le := binary.LittleEndian
	b := append([]byte("II\x1a\x00\x00\x00HEAPCCDR"), make([]byte, 12)...)
	heap := append(le.AppendUint32(nil, seconds), make([]byte, 8)...)
	heap = le.AppendUint16(heap, 1)
	heap = le.AppendUint32(le.AppendUint32(le.AppendUint16(heap, 0x180e), 12), 0)
	return append(b, le.AppendUint32(heap, 12)...)
}

// TestPlaces checks places at the limits, and invalid ones.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		at   []float64
		want exif.Place
	}{
		{[]float64{47.5, -12.25}, exif.Place{Longitude: -12.25, Latitude: 47.5}},
		{[]float64{-33.8567844, 151.2152967}, exif.Place{Longitude: 151.2152967, Latitude: -33.8567844}},
		{[]float64{90, 180}, exif.Place{Longitude: 180, Latitude: 90}},
		{[]float64{-90, -180}, exif.Place{Longitude: -180, Latitude: -90}},
		{[]float64{0, 7.5}, exif.Place{Longitude: 7.5}},
		{[]float64{0, 0}, exif.Place{}}, // receivers without a signal write it
		{[]float64{91, 7}, exif.Place{}},
		{[]float64{7, 181}, exif.Place{}},
	} {
		got := exif.Read(exiftest.JPEG([]byte(jpeg), exiftest.EXIF(binary.BigEndian, exiftest.Tags{Place: tt.at}), nil))
		if got.Place != tt.want {
			t.Errorf("place %v = %+v, want %+v", tt.at, got.Place, tt.want)
		}
	}
	b := exiftest.EXIF(binary.BigEndian, exiftest.Tags{Place: []float64{47.5, 12.25}})
	for at := range b {
		damaged := bytes.Clone(b)
		damaged[at] ^= 0xff
		got := exif.Read(damaged).Place
		if got.Latitude < -90 || got.Latitude > 90 || got.Longitude < -180 || got.Longitude > 180 {
			t.Errorf("place %+v", got)
		}
	}
}

// FuzzRead: any bytes give a date of the calendar and a place on Earth.
func FuzzRead(f *testing.F) {
	b := exiftest.EXIF(binary.BigEndian, exiftest.Tags{Original: "2019:07:21 23:06:38", OriginalOffset: "-09:00", Place: []float64{47.5, -12.25}})
	f.Add(exiftest.JPEG([]byte(jpeg), b, exiftest.XMP("exif:GPSLatitude", "47,30N", "exif:GPSLongitude", "12,15W", "xmp:CreateDate", "2019-07-21")))
	f.Add(exiftest.PNG([]byte(png), exiftest.Chunk("eXIf", b), exiftest.Chunk("tEXt", []byte("Creation Time\x00Sun, 21 Jul 2019 23:06:38 GMT"))))
	f.Add(exiftest.WebP([]byte(webp), b, nil))
	f.Add(exiftest.HEIF(b))
	f.Add(exiftest.JXL([]byte("\xff\x0a"), b))
	f.Add(crw(1563750398))
	f.Add(b)
	f.Fuzz(func(t *testing.T, file []byte) {
		got := exif.Read(file)
		at := time.Unix(got.Taken.Wall, 0).UTC()
		if y := at.Year(); got.Taken.Known && (y < 1 || y > 9999) || !got.Taken.Known && got.Taken != (exif.Time{}) {
			t.Errorf("date %+v", got.Taken)
		}
		if got.Place.Latitude < -90 || got.Place.Latitude > 90 || got.Place.Longitude < -180 || got.Place.Longitude > 180 {
			t.Errorf("place %+v", got.Place)
		}
		if again := exif.Read(bytes.Clone(file)); again != got {
			t.Errorf("%+v, then %+v", got, again)
		}
	})
}
