package show

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// loadInput reads an input that the answer lists. If the host has no memory for the answer, it returns an error. It continues if the call
// has written, since the answer then shows the inputs' ids.
func loadInput(x *call.Call, v *partition.View, ord uint32) (catalog.Input, error) {
	if err := x.Room(); err != nil {
		return catalog.Input{}, err
	}
	in, err := v.Input(ord)
	return held(x, v, &in, err)
}

// LoadWritten is [loadInput] for an input of the call's writes, by the operation that created it. ord is its ordinal in an earlier view. In
// a replica it has another one if its creation has come back from the origin since then.
func LoadWritten(x *call.Call, v *partition.View, dot log.Dot, ord uint32) (catalog.Input, error) {
	if err := x.Room(); err != nil {
		return catalog.Input{}, err
	}
	in, err := v.Input(ord)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && in.Dot != dot {
		in, err = v.InputByDot(dot)
	}
	return held(x, v, &in, err)
}

// held completes an input that was read for the answer.
func held(x *call.Call, v *partition.View, in *catalog.Input, err error) (catalog.Input, error) {
	if err == nil {
		ReserveInput(x, in)
		err = NameSameFile(x, v, in)
	}
	return *in, err
}

// labelBytes is less than the size of a label in an answer without its concept's id and name, and about its size in memory.
const labelBytes = 60

// ReserveInput counts the bytes of an input that the answer lists.
func ReserveInput(x *call.Call, in *catalog.Input) {
	if !x.Shows(auth.ConceptsGet) {
		in.Labels = nil
	}
	labels := 0
	for i := range in.Labels {
		labels += labelBytes + len(in.Labels[i].Concept)
	}
	meta := in.Meta.JSON()
	if x.Reserve(len(meta) + labels) {
		if len(in.Meta) > 1 {
			in.Meta = catalog.Meta{{JSON: meta}}
		}
		return
	}
	in.Labels, in.Meta = nil, catalog.Meta{{JSON: x.Blank(len(meta) + labels)}}
}

// LoadInputs reads records by their ordinals and skips missing ones.
func LoadInputs(x *call.Call, v *partition.View, ords []uint32) ([]catalog.Input, error) {
	inputs := make([]catalog.Input, 0, len(ords))
	for _, ord := range ords {
		in, err := loadInput(x, v, ord)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// AnswerInputs answers with a list of inputs.
func AnswerInputs(x *call.Call, v *partition.View, s call.Status, inputs []catalog.Input) error {
	var lines ConceptNames
	for i := range inputs {
		if err := lines.Read(x, v, &inputs[i]); err != nil {
			return err
		}
	}
	return x.Answer(s, "", func(w *jsonio.Writer) {
		w.Grow(len(inputs)*InputBytes + x.Loaded)
		w.List("inputs", len(inputs), func(i int) { WriteInput(x, w, &lines, &inputs[i], nil) })
	})
}

// InputBytes is the approximate size of an input in an answer, for reserving memory.
const InputBytes = 400

// WriteInput writes a stored input as answers show it. It always writes data.image, because clients
// read it without a check.
func WriteInput(x *call.Call, w *jsonio.Writer, lines *ConceptNames, in *catalog.Input, status *call.Status) {
	w.Object()
	WriteInputMembers(x, w, lines, in, status)
	w.End('}')
}

// WriteInputMembers writes the members of an input into an object that has other members too.
func WriteInputMembers(x *call.Call, w *jsonio.Writer, lines *ConceptNames, in *catalog.Input, status *call.Status) {
	w.Text("id", in.ID)
	if x.Brief {
		call.WriteStatus(w, call.StatusOfCode(in.Code), in.Detail)
		return
	}
	w.ObjectMember("data")
	w.ObjectMember("image")
	WriteText(w, "url", AddressOf(x, in))
	writeCrop(w, in.Crop)
	if x.AsksFor(call.ShowSHA256) && in.Code == catalog.InputReady {
		w.Text("sha256", in.Blob.String())
	}
	w.End('}')
	if x.Shows(auth.ConceptsGet) {
		lines.write(w, in)
	}
	if meta := in.Meta.JSON(); meta != nil {
		w.Name("metadata")
		w.Raw(meta)
	}
	if in.Geo != nil {
		writeGeo(w, in.Geo)
	}
	lines.writeTaken(w, in)
	w.End('}')
	w.Text("created_at", Timestamp(in.Created.Time()))
	if status != nil {
		call.WriteStatus(w, *status, "")
	} else {
		call.WriteStatus(w, call.StatusOfCode(in.Code), in.Detail)
	}
}

// NameSameFile writes the id of the earliest input with the same file and crop into the status of an input.
func NameSameFile(x *call.Call, v *partition.View, in *catalog.Input) error {
	if in.Code != catalog.InputReady {
		return nil
	}
	first := in.Ord
	err := v.ByPicture(in.Blob, in.Crop, func(ord uint32) bool {
		first = ord
		return false
	})
	if err != nil || first == in.Ord {
		return err
	}
	id, known := x.Earliest[first]
	if !known {
		other, err := v.Input(first)
		if err != nil {
			return err
		}
		if x.Earliest == nil {
			x.Earliest = map[uint32]string{}
		}
		id = other.ID
		x.Earliest[first] = id
	}
	in.Detail = "Input '" + id + "' has the same file."
	return nil
}

// AddressOf returns the URL of an input's picture: the given URL, or a URL of this host for a picture sent as bytes. It may be empty.
func AddressOf(x *call.Call, in *catalog.Input) string {
	if in.URL != "" || in.Hosted == [16]byte{} {
		return in.URL
	}
	return HostedAddress(x, in.Hosted)
}

// HostedAddress returns the URL at which this host serves a picture.
func HostedAddress(x *call.Call, name [16]byte) string {
	return x.Host.PublicURL + call.HostedPath + hex.EncodeToString(name[:])
}

// WriteImage writes the member image: a URL, and the crop unless it is the whole picture.
func WriteImage(w *jsonio.Writer, address string, c raster.Crop) {
	w.ObjectMember("image")
	WriteText(w, "url", address)
	writeCrop(w, c)
	w.End('}')
}

// writeCrop writes the member crop, unless it is the whole picture.
func writeCrop(w *jsonio.Writer, c raster.Crop) {
	if c != (raster.Crop{}) {
		edges := []float64{c.Top, c.Left, c.Bottom, c.Right}
		w.List("crop", len(edges), func(i int) { w.Float(edges[i]) })
	}
}

func writeGeo(w *jsonio.Writer, p *log.Point) {
	w.ObjectMember("geo")
	writeGeoPoint(w, p)
	w.End('}')
}

func writeGeoPoint(w *jsonio.Writer, p *log.Point) {
	w.ObjectMember("geo_point")
	w.Name("longitude")
	w.Float(p.Longitude)
	w.Name("latitude")
	w.Float(p.Latitude)
	w.End('}')
}

// VerdictError returns the error of an item for a verdict, or nil if the item succeeded.
func VerdictError(v *fold.Verdict) error {
	switch v.Code {
	case fold.OK, fold.Superseded:
		return nil
	case fold.Duplicate:
		if v.Detail == "url" {
			return call.Refusef(call.ErrDuplicate, "An input with this URL already exists. Set allow_duplicate_url to add it again.")
		}
		return call.Refusef(call.ErrDuplicate, "An input with this %s already exists.", v.Detail)
	case fold.Gone:
		return call.Refusef(call.ErrNoInput, "The input was deleted.")
	}
	if why, ok := strings.CutPrefix(v.Detail, partition.QuotaRefused); ok {
		return call.Refusef(auth.ErrQuota, "Storage limit: %s.", why)
	}
	return call.Refusef(call.ErrInput, "%s", v.Detail)
}
