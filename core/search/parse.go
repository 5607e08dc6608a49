package search

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Names finds public concepts by name. [lang.Table] implements it.
type Names interface {
	// Resolve returns the id of the concept called name in a language.
	Resolve(name, code string) (id string, ok bool)
}

// Options are the context of a query.
type Options struct {
	Names          Names
	Language       string                                      // language of the application, for a query without a language
	CustomConcepts func(name string) ([]string, error)         // IDs of the application's own concepts with a name; nil: it has none
	Hosted         func(url string) (name [16]byte, ours bool) // public name in the URL of a hosted picture; nil: no picture is hosted
	Unknown        func(path, name, code string)               // called for a name, in a language, that no concept has, and its place; nil: not called
}

// Parse reads the member "query" of a search: {"ands": [clause…], "language": code, "min_score": 0…1}. A member that is absent, or null
// or [] instead of an object, is empty. An empty query matches all inputs. The query borrows v only in the Base64 of its Pictures.
//
// For an invalid query it returns ErrQuery with the path of the fault: more than MaxClauses, an unknown language, a clause without a
// known member. It returns errors of CustomConcepts unchanged.
func Parse(v jsonio.Value, o Options) (*Query, error) {
	p := parser{o: o, q: &Query{}}
	query, err := object(v, "query")
	if err != nil {
		return nil, err
	}
	if err := p.language(query); err != nil {
		return nil, err
	}
	least, err := query.number("min_score")
	if err != nil {
		return nil, err
	}
	if !(least >= 0 && least <= 1) {
		return nil, queryErrorf("query.min_score: %v is not within 0 and 1", least)
	}
	p.q.MinScore = float32(least)
	ands := query.get("ands")
	switch k := ands.Kind(); {
	case k == jsonio.Absent, k == jsonio.Object && ands.Len() == 0:
		return p.q, nil
	case k != jsonio.Array:
		return nil, queryErrorf("query.ands: %s, expected array", k)
	case ands.Len() > MaxClauses:
		return nil, queryErrorf("query.ands: %d clauses, but at most %d are allowed", ands.Len(), MaxClauses)
	}
	i := 0
	for e := range ands.Elems() {
		if err := p.clause(e, fmt.Sprintf("query.ands[%d]", i)); err != nil {
			return nil, err
		}
		i++
	}
	return p.q, nil
}

// queryError is ErrQuery with another text.
type queryError struct{ text string }

func (e *queryError) Error() string { return e.text }
func (e *queryError) Unwrap() error { return ErrQuery }

func queryErrorf(format string, args ...any) error {
	return &queryError{fmt.Sprintf(format, args...)}
}

// node is an object of the query with its path.
type node struct {
	v    jsonio.Value
	path string
}

// object returns v as an object. Absent, null and [] are empty objects.
func object(v jsonio.Value, path string) (node, error) {
	switch k := v.Kind(); {
	case k == jsonio.Object:
		return node{v, path}, nil
	case k == jsonio.Absent, k == jsonio.Null, k == jsonio.Array && v.Len() == 0:
		return node{path: path}, nil
	default:
		return node{}, queryErrorf("%s: %s, expected object", path, k)
	}
}

// get returns a member. A null member is absent.
func (n node) get(name string) jsonio.Value {
	v := n.v.Get(name)
	if v.Kind() == jsonio.Null {
		return jsonio.Value{}
	}
	return v
}

func (n node) has(name string) bool { return n.get(name).Kind() != jsonio.Absent }

// object returns a member as an object. It refuses an object that has members, but none of known.
func (n node) object(name string, known ...string) (node, error) {
	m, err := object(n.get(name), n.path+"."+name)
	if err == nil && len(known) > 0 {
		err = m.checkMembers(known)
	}
	return m, err
}

// text returns a string member, or "" if it is absent.
func (n node) text(name string) (string, error) {
	v := n.get(name)
	if v.Kind() == jsonio.Absent {
		return "", nil
	}
	s, err := v.Str()
	if err != nil {
		return "", queryErrorf("%s.%s: %s, expected string", n.path, name, v.Kind())
	}
	return s, nil
}

// number returns a number member, or 0 if it is absent.
func (n node) number(name string) (float64, error) {
	v := n.get(name)
	if v.Kind() == jsonio.Absent {
		return 0, nil
	}
	f, err := v.Float()
	if err != nil {
		return 0, queryErrorf("%s.%s: expected a number", n.path, name)
	}
	return f, nil
}

// checkMembers refuses an object that has members, but none of the known ones.
func (n node) checkMembers(names []string) error {
	present := false
	for name, v := range n.v.Members() {
		present = present || v.Kind() != jsonio.Null
		if slices.Contains(names, name) {
			return nil
		}
	}
	if present {
		return queryErrorf("%s: expected %s", n.path, strings.Join(names, ", "))
	}
	return nil
}

type parser struct {
	o          Options
	q          *Query
	code       string // language of names
	conditions int
}

func (p *parser) language(query node) error {
	code, err := query.text("language")
	if err != nil {
		return err
	}
	p.code = p.o.Language
	if code != "" {
		p.code = code
	}
	if !lang.Valid(p.code) {
		return queryErrorf("query.language: unsupported language %q", p.code)
	}
	return nil
}

// clause reads {"input": …} or {"output": …}, each with an optional "negate".
func (p *parser) clause(v jsonio.Value, path string) error {
	n := node{v, path}
	if v.Kind() != jsonio.Object {
		return queryErrorf("%s: %s, expected object", path, v.Kind())
	}
	if !n.has("input") && !n.has("output") {
		return queryErrorf("%s: expected input, output", path)
	}
	var c Clause
	if v := n.get("negate"); v.Kind() != jsonio.Absent {
		negate, err := truth(v)
		if err != nil {
			return queryErrorf("%s.negate: expected true or false", path)
		}
		c.Negate = negate
	}
	input, err := n.object("input", "id", "data")
	if err == nil {
		err = p.input(&c, input)
	}
	if err != nil {
		return err
	}
	output, err := n.object("output", "data", "input")
	if err == nil {
		err = p.output(&c, output)
	}
	if err != nil {
		return err
	}
	if p.conditions += len(c.All); p.conditions > MaxClauses {
		return queryErrorf("%s: at most %d conditions are allowed", path, MaxClauses)
	}
	if len(c.All) > 0 {
		p.q.Clauses = append(p.q.Clauses, c)
	}
	return nil
}

// truth reads true, false, and numbers that equal 1 or 0.
func truth(v jsonio.Value) (bool, error) {
	if v.Kind() == jsonio.Number {
		f, err := v.Float()
		if err == nil && (f == 0 || f == 1) {
			return f == 1, nil
		}
		return false, ErrQuery
	}
	return v.Bool()
}

func (p *parser) input(c *Clause, n node) error {
	id, err := n.text("id")
	if err != nil {
		return err
	}
	if id != "" {
		c.All = append(c.All, InputID{id})
	}
	data, err := n.object("data", "concepts", "metadata", "image", "geo")
	if err != nil {
		return err
	}
	if err := p.concepts(c, data, func(ids []string, present bool) Condition {
		if present {
			return Label{ids, log.True}
		}
		return Label{ids, log.False}
	}); err != nil {
		return err
	}
	if m := data.get("metadata"); m.Kind() != jsonio.Absent && !(m.Len() == 0 && (m.Kind() == jsonio.Object || m.Kind() == jsonio.Array)) {
		pattern, err := index.NewPattern(m.Raw())
		if err != nil {
			return queryErrorf("%s.metadata: %v", data.path, err)
		}
		c.All = append(c.All, Metadata{pattern})
	}
	if err := p.url(c, data); err != nil {
		return err
	}
	return p.geo(c, data)
}

// url reads the image of an input clause, which finds inputs by URL or by bytes.
func (p *parser) url(c *Clause, data node) error {
	image, err := data.object("image", "url", "base64")
	if err != nil {
		return err
	}
	address, err := image.text("url")
	if err != nil {
		return err
	}
	if address = strings.TrimSpace(address); address != "" {
		u := URL{URL: address}
		if p.o.Hosted != nil {
			if name, ours := p.o.Hosted(address); ours {
				u.Hosted = name
			}
		}
		c.All = append(c.All, u)
	}
	inline, err := image.base64()
	if err != nil || inline.Kind() == jsonio.Absent {
		return err
	}
	picture, err := inline.Base64(nil, "image/")
	if err != nil {
		return queryErrorf("%s.base64: %v", image.path, err)
	}
	c.All = append(c.All, Bytes{blob.Sum(picture)})
	return nil
}

// base64 returns the member "base64". An empty one is absent.
func (n node) base64() (jsonio.Value, error) {
	v := n.get("base64")
	if v.Kind() != jsonio.Absent && v.Kind() != jsonio.String {
		return v, queryErrorf("%s.base64: %s, expected string", n.path, v.Kind())
	}
	if string(v.Raw()) == `""` {
		return jsonio.Value{}, nil
	}
	return v, nil
}

func (p *parser) output(c *Clause, n node) error {
	data, err := n.object("data", "concepts")
	if err != nil {
		return err
	}
	if err := p.concepts(c, data, func(ids []string, present bool) Condition {
		return Prediction{Concepts: ids, Absent: !present}
	}); err != nil {
		return err
	}
	input, err := n.object("input", "id", "data")
	if err != nil {
		return err
	}
	return p.similar(c, input)
}

// similar reads the input of an output clause: a picture by URL, bytes or stored input.
func (p *parser) similar(c *Clause, n node) error {
	data, err := n.object("data", "image")
	if err != nil {
		return err
	}
	image, err := data.object("image", "url", "base64", "crop")
	if err != nil {
		return err
	}
	var pic Picture
	if pic.Input, err = n.text("id"); err != nil {
		return err
	}
	if pic.URL, err = image.text("url"); err != nil {
		return err
	}
	pic.URL = strings.TrimSpace(pic.URL)
	if pic.Base64, err = image.base64(); err != nil {
		return err
	}
	if pic.Crop, err = image.crop(); err != nil {
		return err
	}
	ways := 0
	for _, present := range []bool{pic.Input != "", pic.URL != "", pic.Base64.Kind() != jsonio.Absent} {
		if present {
			ways++
		}
	}
	switch {
	case ways == 0 && pic.Crop == raster.Crop{}:
		return nil // an empty image adds no condition
	case ways != 1:
		return queryErrorf("%s: expected exactly one of id, data.image.url and data.image.base64", n.path)
	}
	c.All = append(c.All, Similar{len(p.q.Pictures)})
	p.q.Pictures = append(p.q.Pictures, pic)
	return nil
}

// crop reads [top, left, bottom, right]. Absent or [] means the whole picture.
func (n node) crop() (raster.Crop, error) {
	v := n.get("crop")
	if v.Kind() == jsonio.Absent || v.Kind() == jsonio.Array && v.Len() == 0 {
		return raster.Crop{}, nil
	}
	edges := make([]float64, 0, 4)
	for e := range v.Elems() {
		f, err := e.Float()
		if err != nil || f < 0 || f > 1 || len(edges) == 4 {
			edges = nil
			break
		}
		edges = append(edges, f)
	}
	if len(edges) != 4 || edges[0] >= edges[2] || edges[1] >= edges[3] {
		return raster.Crop{}, queryErrorf("%s.crop: expected top, left, bottom and right from 0 to 1, top above bottom and left before right", n.path)
	}
	return raster.Crop{Top: edges[0], Left: edges[1], Bottom: edges[2], Right: edges[3]}, nil
}

// concepts reads data.concepts: each an ID or a name, and whether it is present (default: present).
func (p *parser) concepts(c *Clause, data node, condition func(ids []string, present bool) Condition) error {
	list := data.get("concepts")
	path := data.path + ".concepts"
	if k := list.Kind(); k != jsonio.Absent && k != jsonio.Array && (k != jsonio.Object || list.Len() > 0) {
		return queryErrorf("%s: %s, expected array", path, k)
	}
	i := 0
	for e := range list.Elems() {
		n := node{e, fmt.Sprintf("%s[%d]", path, i)}
		i++
		if e.Kind() != jsonio.Object {
			return queryErrorf("%s: %s, expected object", n.path, e.Kind())
		}
		ids, err := p.concept(n)
		if err != nil {
			return err
		}
		present := true
		if v := n.get("value"); v.Kind() != jsonio.Absent {
			if present, err = truth(v); err != nil {
				return queryErrorf("%s.value: expected true, false, 1 or 0", n.path)
			}
		}
		c.All = append(c.All, condition(ids, present))
	}
	return nil
}

// concept returns the ids that a concept of a clause may mean: its id, or every concept,
// public in the query's language or the application's own, that has its name.
func (p *parser) concept(n node) ([]string, error) {
	id, err := n.text("id")
	if err != nil {
		return nil, err
	}
	if id != "" {
		return []string{id}, nil
	}
	name, err := n.text("name")
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, queryErrorf("%s: expected id, name", n.path)
	}
	var ids []string
	if public, ok := p.o.Names.Resolve(name, p.code); ok {
		ids = append(ids, public)
	}
	if p.o.CustomConcepts != nil {
		own, err := p.o.CustomConcepts(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, own...)
	}
	if len(ids) == 0 && p.o.Unknown != nil {
		p.o.Unknown(n.path+".name", name, p.code)
	}
	return ids, nil
}

func (p *parser) geo(c *Clause, data node) error {
	n, err := data.object("geo", "geo_point", "geo_box", "longitude", "latitude")
	if err != nil {
		return err
	}
	if n.has("geo_box") {
		box, err := n.box()
		if err != nil {
			return err
		}
		c.All = append(c.All, box)
	}
	if !n.has("geo_point") && !n.has("longitude") && !n.has("latitude") {
		return nil
	}
	centre, err := n.point()
	if err != nil {
		return err
	}
	angle, err := n.limit()
	if err != nil {
		return err
	}
	c.All = append(c.All, Radius{centre, angle})
	return nil
}

// point reads {"longitude", "latitude"}, or an object with such a geo_point.
func (n node) point() (log.Point, error) {
	var err error
	if n.has("geo_point") {
		if n, err = n.object("geo_point"); err != nil {
			return log.Point{}, err
		}
	}
	var at log.Point
	if at.Longitude, err = n.number("longitude"); err != nil {
		return at, err
	}
	if at.Latitude, err = n.number("latitude"); err != nil {
		return at, err
	}
	switch {
	case !n.has("longitude") || !n.has("latitude"):
		return at, queryErrorf("%s: expected longitude and latitude", n.path)
	case math.Abs(at.Latitude) > 90:
		return at, queryErrorf("%s.latitude: %v is not within ±90", n.path, at.Latitude)
	case math.Abs(at.Longitude) > 180:
		return at, queryErrorf("%s.longitude: %v is not within ±180", n.path, at.Longitude)
	}
	return at, nil
}

// Conversion of distances along a great circle to angles.
const (
	earthRadiusKilometers = 6371.0088
	kilometersPerMile     = 1.609344
)

// limit reads geo_limit and returns its central angle in radians.
func (n node) limit() (float64, error) {
	limit, err := n.object("geo_limit")
	if err != nil {
		return 0, err
	}
	unit, err := limit.text("type")
	if err != nil {
		return 0, err
	}
	value, err := limit.number("value")
	if err != nil {
		return 0, err
	}
	if value < 0 {
		return 0, queryErrorf("%s.value: %v is negative", limit.path, value)
	}
	switch unit {
	case "withinMiles":
		value *= kilometersPerMile / earthRadiusKilometers
	case "withinKilometers":
		value /= earthRadiusKilometers
	case "withinDegrees":
		value *= math.Pi / 180
	case "withinRadians":
	default:
		return 0, queryErrorf("%s.type: %q, expected withinMiles, withinKilometers, withinDegrees or withinRadians", limit.path, unit)
	}
	return value, nil
}

// box reads geo_box: two opposite corners in any order.
func (n node) box() (Box, error) {
	v := n.get("geo_box")
	if v.Kind() != jsonio.Array || v.Len() != 2 {
		return Box{}, queryErrorf("%s.geo_box: expected an array of two corners", n.path)
	}
	var corners []log.Point
	for e := range v.Elems() {
		corner, err := object(e, fmt.Sprintf("%s.geo_box[%d]", n.path, len(corners)))
		if err != nil {
			return Box{}, err
		}
		at, err := corner.point()
		if err != nil {
			return Box{}, err
		}
		corners = append(corners, at)
	}
	a, b := corners[0], corners[1]
	return Box{
		Min: log.Point{Longitude: min(a.Longitude, b.Longitude), Latitude: min(a.Latitude, b.Latitude)},
		Max: log.Point{Longitude: max(a.Longitude, b.Longitude), Latitude: max(a.Latitude, b.Latitude)},
	}, nil
}
