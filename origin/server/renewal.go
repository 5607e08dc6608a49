package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/origin/server/jobs"
)

// renewals are the metrics of a change of network, of all applications together.
func renewals(engine jobs.Renewing) []prometheus.Collector {
	sum := func(name, help string, of func(core.Progress) uint64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Subsystem: "renewal", Name: name, Help: help}, func() float64 {
			under, err := engine.Renewals()
			if err != nil {
				return 0 // it is closing
			}
			n := uint64(0)
			for _, p := range under {
				n += of(p)
			}
			return float64(n)
		})
	}
	return []prometheus.Collector{
		sum("applications", "Applications served by an older network while the newest one analyses their inputs again.", func(core.Progress) uint64 { return 1 }),
		sum("inputs", "Inputs of these applications.", func(p core.Progress) uint64 { return p.All }),
		sum("inputs_done", "Inputs of these applications that the newest network has analysed.", func(p core.Progress) uint64 { return p.Done }),
		sum("inputs_failed", "Inputs of these applications that the newest network could not analyse.", func(p core.Progress) uint64 { return p.Failed }),
	}
}
