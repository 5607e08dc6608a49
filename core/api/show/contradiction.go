package show

import (
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// fieldNames has the names of registers in answers.
var fieldNames = [...]string{
	catalog.LabelRegister: "label", catalog.MetaRegister: "metadata", catalog.PlaceRegister: "place",
	catalog.ConceptNameRegister: "name", catalog.ModelNameRegister: "name", catalog.DeletionRegister: "deletion",
}

// WriteContradiction writes the members of a contradiction. makers has the keys and accounts of values whose record does not have them.
func WriteContradiction(w *jsonio.Writer, c *catalog.Contradiction, makers map[log.Stamp]string) {
	WriteText(w, "id", c.Register.String())
	WriteText(w, "verdict", "contradiction")
	WriteText(w, "field", fieldNames[c.Kind])
	kind := c.Kind
	if kind == catalog.DeletionRegister {
		kind = c.Written
		WriteText(w, "written", fieldNames[kind])
	}
	switch kind {
	case catalog.ConceptNameRegister:
		WriteText(w, "concept_id", c.Register.ID)
	case catalog.ModelNameRegister:
		WriteText(w, "model_id", c.Name)
	default:
		WriteText(w, "input_id", c.Name)
		WriteText(w, "concept_id", c.Register.ID)
	}
	if kind == catalog.MetaRegister {
		w.Texts("path", c.Path)
	}
	WriteText(w, "reason", contradictionReason(c))
	serves := c.Serves()
	w.Objects("values", len(c.Values), func(i int) {
		v := &c.Values[i]
		writeSetValue(w, kind, v)
		WriteTrue(w, "serves", i == serves)
		WriteTime(w, "at", v.At.MadeAt().Time())
		WriteText(w, "writer", v.At.Writer.String())
		by := v.By
		if by == "" {
			by = makers[v.At]
		}
		WriteText(w, "by", by)
	})
}

func contradictionReason(c *catalog.Contradiction) string {
	if c.Kind == catalog.DeletionRegister {
		return "It was deleted by somebody who had not seen this change."
	}
	return "The makers of these values did not know of each other's."
}

// writeSetValue writes the value of a register; null if it was removed.
func writeSetValue(w *jsonio.Writer, kind catalog.RegisterKind, v *catalog.SetValue) {
	if v.Deleted {
		WriteTrue(w, "deleted", true)
		return
	}
	w.Name("value")
	switch {
	case kind == catalog.LabelRegister && v.Label != log.Removed:
		w.Int(int64(v.Label) - int64(log.False))
	case kind == catalog.MetaRegister && v.JSON != nil:
		w.Raw(v.JSON)
	case kind == catalog.PlaceRegister && v.Geo != nil:
		w.Object()
		writeGeoPoint(w, v.Geo)
		w.End('}')
	case kind == catalog.ConceptNameRegister, kind == catalog.ModelNameRegister:
		w.String(v.Name)
	default:
		w.Null()
	}
}
