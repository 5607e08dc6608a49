package httpd

import (
	"bytes"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// metrics holds the server's Prometheus metrics.
type metrics struct {
	requests *prometheus.CounterVec // by method and status
	refused  *prometheus.CounterVec // by reason
	duration prometheus.Histogram   // seconds from the header to the answer
	inFlight prometheus.Gauge
	evicted  prometheus.Counter
	panics   prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "sightline", Subsystem: "http", Name: name, Help: help}
	}
	return &metrics{
		requests: prometheus.NewCounterVec(counter("requests_total", "Requests answered."), []string{"method", "status"}),
		refused:  prometheus.NewCounterVec(counter("refused_total", "Requests and connections refused before any work."), []string{"reason"}),
		evicted:  prometheus.NewCounter(counter("evicted_total", "Idle connections closed to make room.")),
		panics:   prometheus.NewCounter(counter("panics_total", "Recovered panics. Each one is a bug.")),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "sightline", Subsystem: "http", Name: "request_seconds",
			Help:    "Time from a request's header to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "sightline", Subsystem: "http", Name: "in_flight", Help: "Requests being read or answered.",
		}),
	}
}

func (m *metrics) register(r prometheus.Registerer, s *Server) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Subsystem: "http", Name: name, Help: help}, value)
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.refused, m.duration, m.inFlight, m.evicted, m.panics,
		gauge("body_budget_bytes", "Bytes left of the memory budget for request bodies.", func() float64 { return float64(s.bodies.Free()) }),
		gauge("answer_budget_bytes", "Bytes left of the memory budget for answers.", func() float64 { return float64(s.answers.Free()) }),
		gauge("connections", "Open connections.", func() float64 { return float64(s.openConnections()) }),
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) openConnections() int { return s.gate.connections() + s.nodes.connections() }

// exposition answers with the output of Prometheus's own handler, which uses net/http.
func (s *Server) exposition(ctx *fasthttp.RequestCtx, id string) int {
	w := recorder{header: http.Header{}, status: 200}
	request := &http.Request{Method: "GET", Header: http.Header{}}
	promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{}).ServeHTTP(&w, request)
	return s.write(ctx, id, &api.Response{Status: w.status, ContentType: w.header.Get("Content-Type"), Body: w.body.Bytes()})
}

// recorder is a minimal http.ResponseWriter.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
