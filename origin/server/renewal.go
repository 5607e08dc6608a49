package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/origin/server/jobs"
)

// renewing is an engine that re-analyses inputs with its newest network.
type renewing interface {
	jobs.Reembedder
	// MissingPictures returns the number of inputs whose pictures the store lacks.
	MissingPictures() (uint64, error)
}

// renewals returns metrics of the re-embedding of all applications together, and of missing pictures.
func renewals(engine renewing) []prometheus.Collector {
	sum := func(name, help string, of func(core.ReembedProgress) uint64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Subsystem: "renewal", Name: name, Help: help}, func() float64 {
			under, err := engine.ReembedProgress()
			if err != nil {
				return 0 // the engine is closing
			}
			n := uint64(0)
			for _, p := range under {
				n += of(p)
			}
			return float64(n)
		})
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Name: "pictures_missing", Help: "Inputs that cannot be analysed because the store lacks their pictures."}, func() float64 {
			n, err := engine.MissingPictures()
			if err != nil {
				return 0 // the engine is closing
			}
			return float64(n)
		}),
		sum("applications", "Applications served by an older network while the newest one analyses their inputs again.", func(core.ReembedProgress) uint64 { return 1 }),
		sum("inputs", "Inputs of these applications.", func(p core.ReembedProgress) uint64 { return p.All }),
		sum("inputs_done", "Inputs of these applications that the newest network has analysed.", func(p core.ReembedProgress) uint64 { return p.Done }),
		sum("inputs_failed", "Inputs of these applications that the newest network could not analyse.", func(p core.ReembedProgress) uint64 { return p.Failed }),
	}
}
