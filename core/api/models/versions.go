package models

import (
	"encoding/hex"
	"math"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Versions lists a model's versions, newest first.
func Versions(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	var rows []catalog.Version
	var public []show.Model
	if m.Public != nil {
		public = call.PageRows([]show.Model{m}, p)
	} else {
		at, from := int64(0), (p.Number-1)*p.Size
		if err := v.Versions(m.Custom.Dot, func(got catalog.Version) bool {
			if at >= from {
				clear(got.Concepts) // the list shows only the number of concepts
				rows = append(rows, got)
			}
			at++
			return at < from+p.Size
		}); err != nil {
			return err
		}
	}
	digests := make([][32]byte, len(rows))
	for i := range rows {
		if digests[i], err = digestOf(x, v, &rows[i]); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("model_versions")
		w.Array()
		for _, m := range public {
			show.WritePublicVersion(w, m.Public)
		}
		for i := range rows {
			show.WriteVersion(w, &rows[i], func() { writeDigest(w, digests[i]) })
		}
		w.End(']')
	})
}

// Version writes one version of a model.
func Version(x *call.Call) error {
	v, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	var digest [32]byte
	if m.Public == nil {
		if digest, err = digestOf(x, v, m.Version); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("model_version")
		if m.Public != nil {
			show.WritePublicVersion(w, m.Public)
		} else {
			show.WriteVersion(w, m.Version, func() {
				writeDigest(w, digest)
				writeProgress(x, w, m.Version)
			})
		}
	})
}

// digestOf returns the digest of a version's training. It is zero if the version has none or the request does not ask for it.
func digestOf(x *call.Call, v *partition.View, version *catalog.Version) ([32]byte, error) {
	if !x.AsksFor(call.ShowDigest) {
		return [32]byte{}, nil
	}
	return v.TrainingDigest(version)
}

// writeDigest writes the digest of a version's training, unless it is zero.
func writeDigest(w *jsonio.Writer, digest [32]byte) {
	if digest != ([32]byte{}) {
		w.Text("digest", hex.EncodeToString(digest[:]))
	}
}

// writeProgress writes the progress of a version's training, from 0 to 1, if the request asks for it and the training runs on this host.
func writeProgress(x *call.Call, w *jsonio.Writer, v *catalog.Version) {
	if !x.AsksFor(call.ShowProgress) || v.Code != catalog.VersionQueued || x.App.Training == nil {
		return
	}
	if share, underway := x.App.Training(v); underway {
		w.Name("progress")
		w.Float(math.Floor(share*1000) / 1000)
	}
}

// Train requests a new version of a model, which is trained in the background. It ignores the body of the request.
func Train(x *call.Call) error {
	_, m, err := show.CustomModel(x)
	if err != nil {
		return err
	}
	if len(show.ModelConcepts(m.Custom)) == 0 {
		return call.Refusef(call.ErrModelArgument, "model_id '%s' has no concepts to train.", m.Custom.ID)
	}
	version, err := x.NewID()
	if err != nil {
		return err
	}
	verdicts, err := x.Submit(nil, &log.VersionTrain{Model: m.Custom.Dot, Version: version})
	if err != nil {
		return err
	}
	if verdicts[0].Code == fold.Gone {
		return call.UnknownIDError("model_id", m.Custom.ID)
	}
	v := x.View()
	if m, err = show.FindModel(x, v, m.Custom.ID, version); err != nil {
		return err
	}
	m.Named = false
	return answerModel(x, v, m, show.InfoMessage)
}

// DeleteVersion deletes a version of a model.
func DeleteVersion(x *call.Call) error {
	_, m, err := show.CustomModel(x)
	if err != nil {
		return err
	}
	return x.Done(&log.VersionDelete{Model: m.Custom.Dot, Version: m.Version.ID})
}
