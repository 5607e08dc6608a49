package inputs

import (
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// Source answers with the data that an export needs and no other answer has: the URL with which the input was added, the URL and the
// hash of its picture, and the edits of its predictions.
//
// A client copies an input with a url and a picture by a POST of both, with "downloaded": true in its image. This means that the
// picture is the content of the url.
func Source(x *call.Call) error {
	_, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.ObjectMember("source")
		show.WriteText(w, "url", in.URL)
		if in.Code == catalog.InputReady {
			w.Text("picture", show.HostedAddress(x, in.Hosted))
			w.Text("content_type", in.ContentType)
			w.Text("sha256", in.Blob.String())
		}
		if x.Shows(auth.ConceptsGet) {
			w.List("edits", len(in.Edits), func(i int) { writeEdit(w, &in.Edits[i].OutputEdit) })
		}
		w.End('}')
	})
}

func writeEdit(w *jsonio.Writer, e *log.OutputEdit) {
	w.Object()
	w.Text("id", e.Concept)
	show.WriteFloat32(w, "value", e.Value)
	show.WriteTrue(w, "removed", e.Removed)
	w.End('}')
}
