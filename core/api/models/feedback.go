package models

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/log"
)

// Feedback stores a user's comment on a model's outputs. It changes nothing else.
func Feedback(x *call.Call) error {
	_, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	input, err := x.Body.Object("input")
	if err != nil {
		return call.Refuse(call.ErrFeedback, err)
	}
	raw := input.Value.Raw()
	if len(raw) == 0 || len(raw) > call.MaxFeedbackBytes {
		return call.Refusef(call.ErrFeedback, "input: must be an object of at most %d bytes.", call.MaxFeedbackBytes)
	}
	f := &log.Feedback{Version: x.IDs["version_id"], JSON: bytes.Clone(raw)}
	if f.Model = x.IDs["model_id"]; m.Public != nil {
		f.Model = m.Public.ID
	}
	return x.Done(f)
}
