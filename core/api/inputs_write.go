package api

import (
	"encoding/hex"
	"errors"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// writeInput writes a stored input as answers show it. data.image is in every one: clients
// look for it without a check.
func writeInput(x *call.Call, w *jsonio.Writer, lines *conceptLines, in *catalog.Input, said *call.Status) {
	w.Object()
	writeInputMembers(x, w, lines, in, said)
	w.End('}')
}

func writeInputMembers(x *call.Call, w *jsonio.Writer, lines *conceptLines, in *catalog.Input, said *call.Status) {
	w.Name("id")
	w.String(in.ID)
	if x.Brief {
		w.Name("status")
		call.WriteStatus(w, call.StatusOfCode(in.Code), in.Detail)
		return
	}
	w.Name("data")
	w.Object()
	writeImage(w, addressOf(x, in), in.Crop)
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
	w.Name("created_at")
	w.String(timestamp(in.Created.Time()))
	w.Name("status")
	if said != nil {
		call.WriteStatus(w, *said, "")
	} else {
		call.WriteStatus(w, call.StatusOfCode(in.Code), in.Detail)
	}
}

// nameSameFile has the status of an input name the earliest input with the same file and crop.
func nameSameFile(x *call.Call, v *partition.View, in *catalog.Input) error {
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

// addressOf is the address of an input's picture: the given one or, for bytes, one of this host. A deleted input has none.
func addressOf(x *call.Call, in *catalog.Input) string {
	if in.URL != "" || in.Hosted == [16]byte{} {
		return in.URL
	}
	return hostedAddress(x, in.Hosted)
}

func hostedAddress(x *call.Call, name [16]byte) string {
	return x.Host.PublicURL + call.HostedPath + hex.EncodeToString(name[:])
}

func writeImage(w *jsonio.Writer, address string, c raster.Crop) {
	w.Name("image")
	w.Object()
	if address != "" {
		w.Name("url")
		w.String(address)
	}
	if c != (raster.Crop{}) {
		w.Name("crop")
		w.Array()
		for _, edge := range []float64{c.Top, c.Left, c.Bottom, c.Right} {
			w.Float(edge)
		}
		w.End(']')
	}
	w.End('}')
}

func writeGeo(w *jsonio.Writer, p *log.Point) {
	w.Name("geo")
	w.Object()
	w.Name("geo_point")
	w.Object()
	w.Name("longitude")
	w.Float(p.Longitude)
	w.Name("latitude")
	w.Float(p.Latitude)
	w.End('}')
	w.End('}')
}

// conceptLines are the names of the concepts that an answer's inputs are labelled with, read
// once each.
type conceptLines struct {
	known map[string]conceptLine
	x     *call.Call
}

type conceptLine struct {
	name   string
	public bool
}

// read looks up the concepts of an input's labels.
func (l *conceptLines) read(x *call.Call, v *partition.View, in *catalog.Input) error {
	l.x = x
	for i := range in.Labels {
		if in.Labels[i].Value == log.Removed {
			continue
		}
		if err := l.look(v, in.Labels[i].Concept); err != nil {
			return err
		}
	}
	return nil
}

func (l *conceptLines) look(v *partition.View, id string) error {
	if _, ok := l.known[id]; ok {
		return nil
	}
	if l.known == nil {
		l.known = map[string]conceptLine{}
	}
	if p, ok := l.x.Net.Concepts[id]; ok {
		l.known[id] = conceptLine{conceptName(l.x, p.Concept, languageOf(l.x, p.Model)), true}
		return nil
	}
	c, err := v.Concept(id)
	if errors.Is(err, catalog.ErrNotFound) {
		c.Name, err = id, nil // of a bundle that is no longer there
	}
	l.known[id] = conceptLine{c.Name, false}
	return err
}

// write writes data.concepts, which an input without labels does not have.
func (l *conceptLines) write(w *jsonio.Writer, in *catalog.Input) {
	open := false
	for i := range in.Labels {
		label := &in.Labels[i]
		if label.Value == log.Removed {
			continue
		}
		if !open {
			open = true
			w.Name("concepts")
			w.Array()
		}
		w.Object()
		l.start(w, label.Concept)
		w.Name("value")
		w.Int(int64(label.Value - log.False))
		w.End('}')
	}
	if open {
		w.End(']')
	}
}

// start writes a concept's id, name and app_id.
func (l *conceptLines) start(w *jsonio.Writer, id string) {
	line := l.known[id]
	w.Name("id")
	w.String(id)
	w.Name("name")
	w.String(line.name)
	w.Name("app_id")
	if line.public {
		writePublicApp(l.x, w)
	} else {
		w.String(l.x.App.ID)
	}
}
