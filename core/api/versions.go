package api

import (
	"encoding/hex"
	"math"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// listVersions lists a model's versions, newest first.
func listVersions(x *Call) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	v := x.view()
	defer v.Close()
	m, err := modelOfPath(x, v)
	if err != nil {
		return err
	}
	var rows []catalog.Version
	var public []model
	if m.public != nil {
		public = cut([]model{m}, p)
	} else {
		at, from := int64(0), (p.number-1)*p.size
		if err := v.Versions(m.own.Dot, func(got catalog.Version) bool {
			if at >= from {
				clear(got.Concepts) // a list shows their number
				rows = append(rows, got)
			}
			at++
			return at < from+p.size
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
	x.ok(func(w *jsonio.Writer) {
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

func readVersion(x *Call) error {
	v := x.view()
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
	x.ok(func(w *jsonio.Writer) {
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
func writeProgress(x *Call, w *jsonio.Writer, v *catalog.Version) {
	if v.Code != catalog.VersionQueued || x.app.Training == nil {
		return
	}
	if share, underway := x.app.Training(v); underway {
		w.Name("progress")
		w.Float(math.Floor(share*1000) / 1000)
	}
}

// trainModel asks for another version of a model, which is trained in the background. What
// the body says does not matter.
func trainModel(x *Call) error {
	v := x.view()
	defer v.Close()
	m, err := ownModel(x, v)
	if err != nil {
		return err
	}
	if len(members(m.own)) == 0 {
		return refusef(ErrModelArgument, "model_id '%s' has no concepts to train.", m.own.ID)
	}
	version, err := x.newID()
	if err != nil {
		return err
	}
	verdicts, err := x.record(&log.VersionTrain{Model: m.own.Dot, Version: version})
	if err != nil {
		return err
	}
	if verdicts[0].Code == fold.Gone {
		return unknown("model_id", m.own.ID)
	}
	after := x.view()
	defer after.Close()
	if m, err = findModel(x, after, m.own.ID, version); err != nil {
		return err
	}
	m.named = false
	return answerModel(x, m, message)
}

func deleteVersion(x *Call) error {
	v := x.view()
	defer v.Close()
	m, err := ownModel(x, v)
	if err != nil {
		return err
	}
	return x.done(&log.VersionDelete{Model: m.own.Dot, Version: m.version.ID})
}
