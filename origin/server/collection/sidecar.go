package collection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// maxSidecar is the maximum size of a sidecar in bytes.
const maxSidecar = 1 << 20

// Sidecar has the data of a file next to a picture: XMP, which photo programs write, or the JSON of Google Takeout.
type Sidecar struct {
	Taken       string // date and time, with an offset if it is known: "2019-07-21T23:06:38-09:00"
	Description string
	Keywords    []string
	Place       exif.Place
}

// fill adds what the sidecars of a picture say to its input.
func (s *Sidecar) fill(in *Input, o Options) (err error) {
	for _, keyword := range s.Keywords {
		if c := (Concept{ID: keyword}); !slices.Contains(in.Concepts, c) {
			in.Concepts = append(in.Concepts, c)
		}
	}
	if s.Place != (exif.Place{}) && !o.NoPlaces {
		if in.Geo, err = geoPoint(s.Place.Latitude, s.Place.Longitude); err != nil {
			return err
		}
	}
	if s.Taken == "" && s.Description == "" {
		return nil
	}
	in.Metadata, err = Marshal(struct {
		Taken       string `json:"taken,omitempty"`
		Description string `json:"description,omitempty"`
	}{s.Taken, s.Description})
	return err
}

// add fills the gaps of s with the data of another sidecar.
func (s *Sidecar) add(other Sidecar) {
	if s.Taken == "" {
		s.Taken = other.Taken
	}
	if s.Description == "" {
		s.Description = other.Description
	}
	if s.Place == (exif.Place{}) {
		s.Place = other.Place
	}
	for _, keyword := range other.Keywords {
		if !slices.Contains(s.Keywords, keyword) {
			s.Keywords = append(s.Keywords, keyword)
		}
	}
}

// isRead reports whether this package reads a sidecar with this name.
func isRead(name string) bool {
	ending := strings.ToLower(path.Ext(name))
	return ending == ".xmp" || ending == ".json"
}

// attach reads the sidecars whose names are those of pictures. XMP wins over JSON. An edited copy of Google's has what its original has. A
// sidecar that cannot be read is listed; the others are left out.
func (w *walk) attach() {
	w.Sidecars = map[string]*Sidecar{}
	n := newNeighbours(w.Found)
	slices.SortFunc(w.beside, func(a, b FoundFile) int {
		return cmp.Or(strings.Compare(strings.ToLower(path.Ext(b.Name)), strings.ToLower(path.Ext(a.Name))), strings.Compare(a.Name, b.Name))
	})
	for _, file := range w.beside {
		pictures := n.of(file.Name)
		if pictures == nil {
			w.LeftOut[Sidecars]++
			continue
		}
		said, err := readSidecar(w.files.FS, file.Path)
		if err != nil {
			w.Found = append(w.Found, FoundFile{Name: file.Name, Err: err})
			continue
		}
		for _, picture := range pictures {
			if w.Sidecars[picture] == nil {
				w.Sidecars[picture] = &Sidecar{}
			}
			w.Sidecars[picture].add(said)
		}
	}
	for _, picture := range n.names {
		ending := path.Ext(picture)
		if original, ok := strings.CutSuffix(strings.TrimSuffix(picture, ending), "-edited"); ok && w.Sidecars[picture] == nil {
			w.Sidecars[picture] = w.Sidecars[original+ending]
		}
	}
}

// readSidecar reads a sidecar by the ending of its name.
func readSidecar(fsys fs.FS, name string) (Sidecar, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return Sidecar{}, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSidecar+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return Sidecar{}, err
	}
	if len(b) > maxSidecar {
		return Sidecar{}, fmt.Errorf("more than %d bytes", maxSidecar)
	}
	if strings.EqualFold(path.Ext(name), ".xmp") {
		return parseXMP(b)
	}
	return parseTakeout(b)
}

// parseXMP reads the XMP of a sidecar.
func parseXMP(b []byte) (s Sidecar, err error) {
	data := exif.ReadXMP(b)
	s.Taken, s.Place = takenText(data.Taken), data.Place
	const dublinCore = "http://purl.org/dc/elements/1.1/"
	var property string // the property that contains the current element
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return Sidecar{}, fmt.Errorf("XMP: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Space == dublinCore {
				property = t.Name.Local
			}
			if t.Name.Local != "li" || property != "subject" && property != "description" {
				continue
			}
			var text string
			if err := d.DecodeElement(&text, &t); err != nil {
				return Sidecar{}, fmt.Errorf("XMP: %w", err)
			}
			switch text = strings.TrimSpace(text); {
			case text == "":
			case property == "subject":
				s.add(Sidecar{Keywords: []string{strings.TrimSpace(form.Line(text, form.MaxIDBytes))}})
			case s.Description == "":
				s.Description = text
			}
		case xml.EndElement:
			if t.Name.Space == dublinCore {
				property = ""
			}
		}
	}
}

// takenText returns a date in the form of Sidecar.Taken.
func takenText(t exif.Time) string {
	if !t.Known {
		return ""
	}
	text := time.Unix(t.Wall, 0).UTC().Format("2006-01-02T15:04:05")
	if !t.HasOffset {
		return text
	}
	sign, minutes := '+', t.Offset
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Sprintf("%s%c%02d:%02d", text, sign, minutes/60, minutes%60)
}

// parseTakeout reads the JSON that Google Takeout writes for a picture. Its date is a moment, so Taken has the offset of UTC.
func parseTakeout(b []byte) (s Sidecar, err error) {
	type place struct{ Latitude, Longitude float64 }
	var t struct {
		Description    string
		PhotoTakenTime struct{ Timestamp string }
		GeoData        place
		GeoDataExif    place
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return s, err
	}
	s.Description = strings.TrimSpace(t.Description)
	if seconds, err := strconv.ParseInt(t.PhotoTakenTime.Timestamp, 10, 64); err == nil {
		if at := time.Unix(seconds, 0).UTC(); at.Year() >= 1 && at.Year() <= 9999 {
			s.Taken = at.Format("2006-01-02T15:04:05+00:00")
		}
	}
	for _, p := range []place{t.GeoData, t.GeoDataExif} { // 0, 0 is an unknown place
		if s.Place == (exif.Place{}) && p.Latitude >= -90 && p.Latitude <= 90 && p.Longitude >= -180 && p.Longitude <= 180 {
			s.Place = exif.Place{Latitude: p.Latitude, Longitude: p.Longitude}
		}
	}
	return s, nil
}

// maxTakeoutName is the number of characters to which Google Takeout shortens the names of its JSON files, without their ending.
const maxTakeoutName = 46

// neighbours finds the pictures of sidecars by their names.
type neighbours struct {
	names  []string            // of the pictures, in order
	byName map[string][]string // pictures by their names in lower case
	byStem map[string][]string // pictures by their names in lower case without ending
}

func newNeighbours(pictures []FoundFile) *neighbours {
	n := &neighbours{byName: map[string][]string{}, byStem: map[string][]string{}}
	for _, p := range pictures {
		if p.Err != nil {
			continue
		}
		lower := strings.ToLower(p.Name)
		n.names = append(n.names, p.Name)
		n.byName[lower] = append(n.byName[lower], p.Name)
		stem := strings.TrimSuffix(lower, path.Ext(lower))
		n.byStem[stem] = append(n.byStem[stem], p.Name)
	}
	slices.Sort(n.names)
	return n
}

// of returns the pictures that a sidecar describes.
func (n *neighbours) of(sidecar string) []string {
	ending := path.Ext(sidecar)
	base := strings.TrimSuffix(sidecar, ending)
	lower := strings.ToLower(base)
	if found := n.byName[lower]; found != nil { // IMG_1.jpg.xmp, IMG_1.jpg.json
		return found
	}
	if strings.EqualFold(ending, ".xmp") { // IMG_1.xmp
		return n.byStem[lower]
	}
	return n.takeout(base)
}

// takeout finds the pictures of a JSON of Google Takeout by its name without its ending:
//
//	IMG_1.jpg.supplemental-metadata     IMG_1.jpg      also cut: IMG_1.jpg.supplem
//	IMG_1.jpg(2), IMG_1.jpg.suppl(2)    IMG_1(2).jpg
//	a name of 46 characters             pictures whose names begin with it
func (n *neighbours) takeout(base string) []string {
	name, number := base, ""
	if i := strings.LastIndexByte(base, '('); i > 0 && strings.HasSuffix(base, ")") {
		if _, err := strconv.ParseUint(base[i+1:len(base)-1], 10, 32); err == nil {
			name, number = base[:i], base[i:]
		}
	}
	numbered := func(picture string) []string {
		ending := path.Ext(picture)
		return n.byName[strings.ToLower(strings.TrimSuffix(picture, ending)+number+ending)]
	}
	if found := numbered(name); found != nil {
		return found
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 && strings.HasPrefix("supplemental-metadata", name[i+1:]) {
		if found := numbered(name[:i]); found != nil {
			return found
		}
		name = name[:i]
	}
	if len([]rune(path.Base(base))) < maxTakeoutName {
		return nil
	}
	var found []string
	first, _ := slices.BinarySearch(n.names, name)
	for _, picture := range n.names[first:] {
		if !strings.HasPrefix(picture, name) {
			break
		}
		if path.Dir(picture) == path.Dir(name) {
			found = append(found, picture)
		}
	}
	return found
}
