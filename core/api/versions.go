package api

import (
	"encoding/hex"
	"math"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// listVersions lists a model's versions, newest first.
func listVersions(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	defer v.Close()
	m, err := modelOfPath(x, v)
	if err != nil {
		return err
	}
	var rows []catalog.Version
	var public []model
	if m.public != nil {
		public = call.Cut([]model{m}, p)
	} else {
		at, from := int64(0), (p.Number-1)*p.Size
		if err := v.Versions(m.own.Dot, func(got catalog.Version) bool {
			if at >= from {
				clear(got.Concepts) // a list shows their number
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
		if digests[i], err = v.TrainingDigest(&rows[i]); err != nil {
			return err
		}
	}
	x.OK(func(w *jsonio.Writer) {
		w.Name("model_versions")
		w.Array()
		for _, m := range public {
			writePublicVersion(w, m.public)
		}
		for i := range rows {
			writeVersion(w, &rows[i], func() { writeDigest(w, digests[i]) })
		}
		w.End(']')
	})
	return nil
}

func readVersion(x *call.Call) error {
	v := x.View()
	defer v.Close()
	m, err := modelOfPath(x, v)
	if err != nil {
		return err
	}
	var digest [32]byte
	if m.public == nil {
		if digest, err = v.TrainingDigest(m.version); err != nil {
			return err
		}
	}
	x.OK(func(w *jsonio.Writer) {
		w.Name("model_version")
		if m.public != nil {
			writePublicVersion(w, m.public)
		} else {
			writeVersion(w, m.version, func() {
				writeDigest(w, digest)
				writeProgress(x, w, m.version)
			})
		}
	})
	return nil
}

// writeDigest writes the digest of a version's training, unless it has none.
func writeDigest(w *jsonio.Writer, digest [32]byte) {
	if digest != ([32]byte{}) {
		w.Name("digest")
		w.String(hex.EncodeToString(digest[:]))
	}
}

// writeProgress writes how far the training of a version is, if it is under way here.
func writeProgress(x *call.Call, w *jsonio.Writer, v *catalog.Version) {
	if v.Code != catalog.VersionQueued || x.App.Training == nil {
		return
	}
	if share, underway := x.App.Training(v); underway {
		w.Name("progress")
		w.Float(math.Floor(share*1000) / 1000)
	}
}

// trainModel asks for another version of a model, which is trained in the background. What
// the body says does not matter.
func trainModel(x *call.Call) error {
	v := x.View()
	defer v.Close()
	m, err := ownModel(x, v)
	if err != nil {
		return err
	}
	if len(members(m.own)) == 0 {
		return call.Refusef(call.ErrModelArgument, "model_id '%s' has no concepts to train.", m.own.ID)
	}
	version, err := x.NewID()
	if err != nil {
		return err
	}
	verdicts, err := x.Record(&log.VersionTrain{Model: m.own.Dot, Version: version})
	if err != nil {
		return err
	}
	if verdicts[0].Code == fold.Gone {
		return call.Unknown("model_id", m.own.ID)
	}
	after := x.View()
	defer after.Close()
	if m, err = findModel(x, after, m.own.ID, version); err != nil {
		return err
	}
	m.named = false
	return answerModel(x, m, message)
}

func deleteVersion(x *call.Call) error {
	v := x.View()
	defer v.Close()
	m, err := ownModel(x, v)
	if err != nil {
		return err
	}
	return x.Done(&log.VersionDelete{Model: m.own.Dot, Version: m.version.ID})
}
