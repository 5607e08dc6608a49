// Package foldtest has what tests of several packages need to compare folded states. Only tests import it.
package foldtest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// ContentDigest returns the SHA-256 of an application's contents as users see them: inputs in their order, and own
// concepts, models and workflows by id. It leaves out sites, clocks, the application's id, versions of models and feedback.
// An application keeps its digest through an export and an import.
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

func inputContent(in *catalog.Input) []byte {
	var e field.Encoder
	e.Text(1, in.ID)
	e.Text(2, in.URL)
	e.Hash(3, in.Blob[:])
	log.EncodeCrop(&e, 4, in.Crop)
	e.Uint(5, uint64(in.Code))
	for _, l := range in.Labels {
		if l.Value != log.Removed {
			log.EncodeLabel(&e, 6, l.Label)
		}
	}
	e.Raw(7, in.Meta.JSON())
	log.EncodePoint(&e, 8, in.Geo)
	for _, x := range in.Edits {
		at := e.Open(9)
		e.Text(1, x.Concept)
		e.Float32(2, x.Value)
		e.Bool(3, x.Removed)
		e.Close(at)
	}
	return e.Bytes(nil)
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

func workflowContents(r catalog.Reader) (out []content, err error) {
	err = r.Workflows(func(w catalog.Workflow) bool {
		var e field.Encoder
		e.Text(1, w.ID)
		for _, n := range w.Nodes {
			log.EncodeNode(&e, 2, n)
		}
		out = append(out, content{w.ID, e.Bytes(nil)})
		return true
	})
	return out, err
}
