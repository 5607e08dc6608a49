package api

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/log"
)

// modelFeedback keeps what a user said of a model's outputs. It changes nothing else.
func modelFeedback(x *Call) error {
	v := x.view()
	defer v.Close()
	m, err := modelOfPath(x, v)
	if err != nil {
		return err
	}
	input, err := x.body.object("input")
	if err != nil {
		return refuse(ErrFeedback, err)
	}
	raw := input.v.Raw()
	if len(raw) == 0 || len(raw) > maxFeedbackBytes {
		return refusef(ErrFeedback, "input: must be an object of at most %d bytes.", maxFeedbackBytes)
	}
	f := &log.Feedback{Version: x.ids["version_id"], JSON: bytes.Clone(raw)}
	if f.Model = x.ids["model_id"]; m.public != nil {
		f.Model = m.public.ID
	}
	return x.done(f)
}
