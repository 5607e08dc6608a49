package inputs

import (
	"bytes"
	"math"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
)

// readMetadata returns data.metadata unchanged, which may be any JSON value. It returns nil if the member is absent or
// null.
func readMetadata(o call.Object) ([]byte, error) {
	v := o.Get("metadata")
	if v.Kind() == jsonio.Absent {
		return nil, nil
	}
	if err := checkMeta(v.Raw()); err != nil {
		return nil, o.Wrap("metadata", err)
	}
	return bytes.Clone(v.Raw()), nil
}

// checkMeta returns an error for a metadata document that exceeds the limits.
func checkMeta(raw []byte) error {
	if len(raw) > form.MaxMetaBytes {
		return call.Refusef(call.ErrInput, "must be at most %d bytes.", form.MaxMetaBytes)
	}
	if err := form.CheckMetadata(raw); err != nil {
		return call.Refusef(call.ErrInput, "must have at most %d levels and at most %d members and elements: %v.", form.MaxMetaDepth, form.MaxMetaMembers, err)
	}
	return nil
}

// refuseRegions returns an error for data with regions, which inputs cannot have.
func refuseRegions(o call.Object) error {
	_, n, err := o.Objects("regions")
	if err == nil && n > 0 {
		err = call.Refusef(call.ErrInput, "%s: regions of a picture are not supported.", o.MemberPath("regions"))
	}
	return err
}

// readGeo reads data.geo: {"geo_point": {"longitude", "latitude"}}, or longitude and latitude directly in geo. It returns nil if geo is
// absent or empty.
func readGeo(o call.Object) (*log.Point, error) {
	for name := "geo"; ; name = "geo_point" {
		if v := o.Get(name); v.Kind() == jsonio.Array && v.Len() > 0 {
			return nil, call.Refusef(call.ErrInput, "%s: an input can have at most one point.", o.MemberPath(name))
		}
		inner, err := o.Object(name)
		if err != nil || inner.Value.Len() == 0 {
			return nil, err
		}
		o = inner
		if !o.Has("geo_point") || name == "geo_point" {
			break
		}
	}
	return readPoint(o)
}

func readPoint(o call.Object) (*log.Point, error) {
	var p log.Point
	for _, c := range []struct {
		name  string
		to    *float64
		limit float64
	}{{"longitude", &p.Longitude, 180}, {"latitude", &p.Latitude, 90}} {
		if !o.Has(c.name) {
			return nil, call.Refusef(call.ErrInput, "%s is missing: a point needs longitude and latitude, in degrees.", o.MemberPath(c.name))
		}
		f, err := o.Number(c.name)
		if err != nil {
			return nil, err
		}
		if math.Abs(f) > c.limit {
			return nil, call.Refusef(call.ErrInput, "%s: %v is not within ±%v degrees.", o.MemberPath(c.name), f, c.limit)
		}
		*c.to = f + 0 // turns a negative zero into a positive one
	}
	return &p, nil
}
