// Package foldtest helps tests of several packages and the simulator to check folded states. It has a naive model of the fold, and a digest
// of contents.
package foldtest

//go:generate go run ../../log/field/gen

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ContentDigest returns the SHA-256 of an application's contents as users see them: inputs in their order, and custom concepts, models and
// workflows by id. It excludes sites, clocks, the application's id, versions of models and feedback. An application keeps its digest
// through an export and an import.
func ContentDigest(r kv.Reader, app catalog.AppID) ([32]byte, error) {
	s := sum{sha256.New()}
	c := catalog.Read(r, app)
	err := c.Inputs(0, func(in catalog.Input) bool {
		s.add(inputContent(&in))
		return true
	})
	if err != nil {
		return [32]byte{}, err
	}
	for _, list := range []func(catalog.Reader) ([]content, error){conceptContents, modelContents, workflowContents} {
		records, err := list(c)
		if err != nil {
			return [32]byte{}, err
		}
		slices.SortFunc(records, func(a, b content) int { return strings.Compare(a.id, b.id) })
		s.add(nil)
		for _, x := range records {
			s.add(x.data)
		}
	}
	return [32]byte(s.Sum(nil)), nil
}

// sum hashes byte strings, each with its length.
type sum struct{ hash.Hash }

func (s sum) add(p []byte) {
	s.Write(binary.AppendUvarint(nil, uint64(len(p))))
	s.Write(p)
}

type content struct {
	id   string
	data []byte
}

// inputBytes is an input as users see it.
//
//field:fields put
type inputBytes struct {
	id     string           `wire:"1"`
	url    string           `wire:"2"`
	blob   blob.Hash        `wire:"3"`
	crop   raster.Crop      `wire:"4"`
	code   int              `wire:"5"`
	labels []log.Label      `wire:"6"`
	meta   []byte           `wire:"7"`
	geo    *log.Point       `wire:"8"`
	edits  []log.OutputEdit `wire:"9"`
}

func inputContent(in *catalog.Input) []byte {
	x := inputBytes{id: in.ID, url: in.URL, blob: in.Blob, crop: in.Crop, code: in.Code, meta: in.Meta.JSON(), geo: in.Geo}
	for _, l := range in.Labels {
		if l.Value != log.Removed {
			x.labels = append(x.labels, l.Label)
		}
	}
	for _, e := range in.Edits {
		x.edits = append(x.edits, e.OutputEdit)
	}
	var b field.Encoder
	putInputBytes(&b, &x)
	return b.Bytes(nil)
}

func conceptContents(r catalog.Reader) (out []content, err error) {
	err = r.Concepts(func(c catalog.Concept) bool {
		var e field.Encoder
		e.Text(1, c.ID)
		e.Text(2, c.Name)
		e.Text(3, c.Language)
		out = append(out, content{c.ID, e.Bytes(nil)})
		return true
	})
	return out, err
}

func modelContents(r catalog.Reader) (out []content, err error) {
	err = r.Models(func(m catalog.Model) bool {
		var e field.Encoder
		e.Text(1, m.ID)
		e.Text(2, m.Name)
		for _, s := range m.Config {
			if s.JSON != nil {
				e.Element(3, s.Name)
				e.Raw(4, s.JSON)
			}
		}
		for _, c := range m.Concepts {
			if c.In {
				e.Element(5, c.Concept)
			}
		}
		out = append(out, content{m.ID, e.Bytes(nil)})
		return true
	})
	return out, err
}

// workflowBytes is a workflow as users see it.
//
//field:fields put
type workflowBytes struct {
	id    string             `wire:"1"`
	nodes []log.WorkflowNode `wire:"2"`
}

func workflowContents(r catalog.Reader) (out []content, err error) {
	err = r.Workflows(func(w catalog.Workflow) bool {
		var e field.Encoder
		putWorkflowBytes(&e, &workflowBytes{w.ID, w.Nodes})
		out = append(out, content{w.ID, e.Bytes(nil)})
		return true
	})
	return out, err
}
