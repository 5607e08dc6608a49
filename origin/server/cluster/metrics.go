package cluster

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
)

// Collectors returns the metrics of this node: sightline_cluster_…, those of Options, and etcd's own, with which its dashboards work.
func (c *Cluster) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func(d *channel.Driver) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Subsystem: "cluster", Name: name, Help: help}, func() float64 {
			if d := c.driving(); d != nil {
				return value(d)
			}
			return 0
		})
	}
	own := []prometheus.Collector{
		gauge("term", "Revision of the newest claim that this node knows.", func(d *channel.Driver) float64 {
			_, newest, _ := d.Serving()
			return float64(newest.Revision)
		}),
		gauge("leads", "1 if this node is the primary.", func(d *channel.Driver) float64 {
			if term, _, _ := d.Serving(); term != 0 {
				return 1
			}
			return 0
		}),
		gauge("position", "Number of records that this node has applied.", func(d *channel.Driver) float64 { return float64(d.Progress().Position.Version) }),
		gauge("lag_records", "Number of records that this node has not applied.", func(d *channel.Driver) float64 { return float64(c.lag(d)) }),
		gauge("takeover_seconds", "Time from the newest claim of this node until it wrote.", func(d *channel.Driver) float64 { return d.TakeoverTime().Seconds() }),
	}
	return append(append(own, c.o.Collectors...), etcdMetrics{})
}

// etcdMetrics are the metrics that etcd registers by itself.
type etcdMetrics struct{}

// Describe implements [prometheus.Collector]. The metrics are known once etcd runs.
func (etcdMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (etcdMetrics) Collect(to chan<- prometheus.Metric) {
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		return // the next time it may succeed
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "etcd_") {
			continue
		}
		d := prometheus.NewDesc(f.GetName(), f.GetHelp(), nil, nil)
		for _, m := range f.GetMetric() {
			to <- gathered{d, m}
		}
	}
}

// gathered is a metric that another registry has collected.
type gathered struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc implements [prometheus.Metric].
func (g gathered) Desc() *prometheus.Desc { return g.desc }

// Write implements [prometheus.Metric].
func (g gathered) Write(to *dto.Metric) error {
	to.Label, to.Gauge, to.Counter, to.Summary, to.Untyped, to.Histogram = g.metric.Label, g.metric.Gauge, g.metric.Counter, g.metric.Summary, g.metric.Untyped, g.metric.Histogram
	return nil
}
