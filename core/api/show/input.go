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

// LoadInput reads an input that the answer lists. It does not read on for an answer that the host has no memory for, unless the call has
// written and shows the inputs' ids.
func LoadInput(x *call.Call, v *partition.View, ord uint32) (catalog.Input, error) {
	if err := x.Room(); err != nil {
		return catalog.Input{}, err
	}
	in, err := v.Input(ord)
	if err == nil {
		HoldInput(x, &in)
		err = NameSameFile(x, v, &in)
	}
	return in, err
}

// labelBytes is less than a label takes in an answer, without its concept's id and name, and about what it takes in memory.
const labelBytes = 60

// HoldInput counts what an input that the answer lists takes.
func HoldInput(x *call.Call, in *catalog.Input) {
	if !x.Shows(auth.ConceptsGet) {
		in.Labels = nil
	}
	labels := 0
	for i := range in.Labels {
		labels += labelBytes + len(in.Labels[i].Concept)
	}
	meta := in.Meta.JSON()
	if x.Fits(len(meta) + labels) {
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
		in, err := LoadInput(x, v, ord)
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

// InputBytes is the approximate size of an input in an answer: memory to reserve.
const InputBytes = 400

// WriteInput writes a stored input as answers show it. data.image is in every one: clients
// look for it without a check.
func WriteInput(x *call.Call, w *jsonio.Writer, lines *ConceptNames, in *catalog.Input, said *call.Status) {
	w.Object()
	WriteInputMembers(x, w, lines, in, said)
	w.End('}')
}

// WriteInputMembers writes the members of an input, for an object that has more.
func WriteInputMembers(x *call.Call, w *jsonio.Writer, lines *ConceptNames, in *catalog.Input, said *call.Status) {
	w.Text("id", in.ID)
	if x.Brief {
		call.WriteStatus(w, call.StatusOfCode(in.Code), in.Detail)
		return
	}
	w.Begin("data")
	WriteImage(w, AddressOf(x, in), in.Crop)
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
	w.End('}')
	w.Text("created_at", Timestamp(in.Created.Time()))
	if said != nil {
		call.WriteStatus(w, *said, "")
	} else {
		call.WriteStatus(w, call.StatusOfCode(in.Code), in.Detail)
	}
}

// NameSameFile has the status of an input name the earliest input with the same file and crop.
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

// AddressOf is the address of an input's picture: the given one or, for bytes, one of this host. A deleted input has none.
func AddressOf(x *call.Call, in *catalog.Input) string {
	if in.URL != "" || in.Hosted == [16]byte{} {
		return in.URL
	}
	return HostedAddress(x, in.Hosted)
}

// HostedAddress is the address at which this host serves a picture.
func HostedAddress(x *call.Call, name [16]byte) string {
	return x.Host.PublicURL + call.HostedPath + hex.EncodeToString(name[:])
}

// WriteImage writes the member image: an address, and a crop where it is not all of the picture.
func WriteImage(w *jsonio.Writer, address string, c raster.Crop) {
	w.Begin("image")
	Member(w, "url", address)
	writeCrop(w, c)
	w.End('}')
}

// writeCrop writes the member crop, unless it is all of the picture.
func writeCrop(w *jsonio.Writer, c raster.Crop) {
	if c != (raster.Crop{}) {
		edges := []float64{c.Top, c.Left, c.Bottom, c.Right}
		w.List("crop", len(edges), func(i int) { w.Float(edges[i]) })
	}
}

func writeGeo(w *jsonio.Writer, p *log.Point) {
	w.Begin("geo")
	w.Begin("geo_point")
	w.Name("longitude")
	w.Float(p.Longitude)
	w.Name("latitude")
	w.Float(p.Latitude)
	w.End('}')
	w.End('}')
}

// VerdictError returns the error of a verdict for its item; nil: it succeeded.
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
