package catalog

import (
	"cmp"
	"slices"

	"github.com/sightline-dev/sightline/core/log"
)

// PastOps returns the operations that an input's record remembers, newest first, each with the part that is still in force. It omits
// overwritten writes and the download. The operation that created the input is complete, except for later changes of its metadata and
// labels. The other operations have sequence number 0 and no author.
func (in *Input) PastOps() []log.Op {
	creation := &log.InputCreate{ID: in.ID, URL: in.URL, Crop: in.Crop, ReadEXIF: in.ReadEXIF}
	if in.URL == "" {
		creation.Blob, creation.ContentType, creation.Hosted = in.Blob, in.ContentType, in.Hosted
	}
	p := past{in: in, creation: creation, at: log.Stamp{At: in.Created, Writer: in.Dot.Writer}}
	p.labels()
	p.meta()
	p.edits()
	if in.GeoAt == p.at {
		creation.Geo = in.Geo
	} else if in.GeoAt != (log.Stamp{}) {
		p.add(in.GeoAt, &log.InputGeo{Input: in.Dot, Geo: in.Geo})
	}
	slices.SortStableFunc(p.ops, func(a, b log.Op) int {
		return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Dot.Writer, a.Dot.Writer))
	})
	return append(p.ops, log.Op{Dot: in.Dot, At: in.Created, By: in.By, Body: creation})
}

// past collects operations by their stamps.
type past struct {
	in       *Input
	creation *log.InputCreate
	at       log.Stamp // stamp of creation
	ops      []log.Op
}

func (p *past) add(at log.Stamp, body log.Body) {
	p.ops = append(p.ops, log.Op{Dot: log.Dot{Writer: at.Writer}, At: at.At, Body: body})
}

// bodyAt returns the body of the operation with a stamp. If there is none, it adds an operation with the body empty and returns that.
func bodyAt[B log.Body](p *past, bodies map[log.Stamp]B, at log.Stamp, empty B) B {
	if body, ok := bodies[at]; ok {
		return body
	}
	bodies[at] = empty
	p.add(at, empty)
	return empty
}

func (p *past) labels() {
	bodies := map[log.Stamp]*log.InputLabels{}
	for _, l := range p.in.Labels {
		if l.At == p.at {
			p.creation.Labels = append(p.creation.Labels, l.Label)
			continue
		}
		body := bodyAt(p, bodies, l.At, &log.InputLabels{Input: p.in.Dot})
		body.Labels = append(body.Labels, l.Label)
	}
}

func (p *past) meta() {
	bodies := map[log.Stamp]*log.InputMeta{}
	for _, part := range p.in.Meta {
		if part.At == p.at && len(part.Path) == 0 {
			p.creation.Meta = part.JSON
			continue
		}
		body := bodyAt(p, bodies, part.At, &log.InputMeta{Input: p.in.Dot})
		write := log.MetaWrite{Path: part.Path, JSON: part.JSON}
		if part.Removed {
			write.Action = log.MetaRemove
		}
		body.Writes = append(body.Writes, write)
	}
}

func (p *past) edits() {
	bodies := map[log.Stamp]*log.OutputsPatch{}
	for _, e := range p.in.Edits {
		body := bodyAt(p, bodies, e.At, &log.OutputsPatch{Input: p.in.Dot})
		body.Edits = append(body.Edits, e.OutputEdit)
	}
}
