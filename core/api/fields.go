package api

import (
	"bytes"
	"math"
	"strings"
	"unicode"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// id returns a member that is an id, "" when absent.
func (o object) id(name string) (string, error) {
	id, err := o.text(name)
	if err == nil && (len(id) > maxIDBytes || strings.ContainsFunc(id, unicode.IsControl)) {
		err = refusef(ErrInput, "%s: must be at most %d bytes, without control characters.", o.at(name), maxIDBytes)
	}
	return id, err
}

// flag returns a member that is true or false, false when absent.
func (o object) flag(name string) (bool, error) { return o.truth(name, false) }

// truth returns a member that is true, false, or a number that equals 1 or 0.
func (o object) truth(name string, absent bool) (bool, error) {
	v := o.get(name)
	switch v.Kind() {
	case jsonio.Absent:
		return absent, nil
	case jsonio.Number:
		f, err := v.Float()
		if err == nil && f != 0 && f != 1 {
			err = refusef(jsonio.ErrType, "expected true, false, 1 or 0")
		}
		return f == 1, o.wrap(name, err)
	}
	b, err := v.Bool()
	return b, o.wrap(name, err)
}

// texts returns an array of strings, nil when absent.
func (o object) texts(name string) ([]string, error) {
	v := o.get(name)
	if k := v.Kind(); k != jsonio.Array && k != jsonio.Absent && (k != jsonio.Object || v.Len() > 0) {
		return nil, wrongKind(o.at(name), k, "array")
	}
	all := make([]string, 0, v.Len())
	for e := range v.Elems() {
		s, err := e.Str()
		if err != nil {
			return nil, o.wrap(name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// Limits of an input's metadata.
const (
	maxMetaBytes   = 64 << 10
	maxMetaDepth   = 32
	maxMetaMembers = 2000 // members and elements together
)

// readMetadata returns data.metadata as it came: any JSON value. nil when absent; null says that
// there is none.
func readMetadata(o object) ([]byte, error) {
	v := o.get("metadata")
	if v.Kind() == jsonio.Absent {
		return nil, nil
	}
	if err := checkMeta(v.Raw()); err != nil {
		return nil, o.wrap("metadata", err)
	}
	return bytes.Clone(v.Raw()), nil
}

// checkMeta holds a metadata document to the limits.
func checkMeta(raw []byte) error {
	if len(raw) > maxMetaBytes {
		return refusef(ErrInput, "must be at most %d bytes.", maxMetaBytes)
	}
	var d jsonio.Doc
	err := d.Parse(raw, jsonio.Limits{Bytes: maxMetaBytes, Depth: maxMetaDepth, Members: maxMetaMembers})
	if err != nil {
		return refusef(ErrInput, "must have at most %d levels and at most %d members and elements: %v.", maxMetaDepth, maxMetaMembers, err)
	}
	return nil
}

// refuseRegions refuses data with regions: an input has none.
func refuseRegions(o object) error {
	_, n, err := o.objects("regions")
	if err == nil && n > 0 {
		err = refusef(ErrInput, "%s: regions of a picture are not supported.", o.at("regions"))
	}
	return err
}

// readGeo reads data.geo: {"geo_point": {"longitude", "latitude"}} or the two at once. nil when
// absent or empty.
func readGeo(o object) (*log.Point, error) {
	for name := "geo"; ; name = "geo_point" {
		if v := o.get(name); v.Kind() == jsonio.Array && v.Len() > 0 {
			return nil, refusef(ErrInput, "%s: an input can have at most one point.", o.at(name))
		}
		inner, err := o.object(name)
		if err != nil || inner.v.Len() == 0 {
			return nil, err
		}
		o = inner
		if !o.has("geo_point") || name == "geo_point" {
			break
		}
	}
	return readPoint(o)
}

func readPoint(o object) (*log.Point, error) {
	var p log.Point
	for _, c := range []struct {
		name string
		to   *float64
		most float64
	}{{"longitude", &p.Longitude, 180}, {"latitude", &p.Latitude, 90}} {
		if !o.has(c.name) {
			return nil, refusef(ErrInput, "%s is missing: a point needs longitude and latitude, in degrees.", o.at(c.name))
		}
		f, err := o.number(c.name)
		if err != nil {
			return nil, err
		}
		if math.Abs(f) > c.most {
			return nil, refusef(ErrInput, "%s: %v is not within ±%v degrees.", o.at(c.name), f, c.most)
		}
		*c.to = f + 0 // a zero is positive
	}
	return &p, nil
}

// publicPrefix begins the ids of public concepts.
const publicPrefix = "ai_"

func isPublicID(id string) bool { return strings.HasPrefix(id, publicPrefix) }

// fixed are the segments that stand where other paths have an id, of any resource. Nothing
// made from now on may have one as its id: it could not be read.
var fixed = []string{"searches", "status", "usage"}
