package httpd

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/sync/feed"
)

// BenchmarkIdleStreams keeps idle streams open, and reports the server's memory for each of them: heap and stacks, with both ends of its
// pipe.
func BenchmarkIdleStreams(b *testing.B) {
	w := apitest.NewWorld(b, memkv.New(), apitest.Tiny(b), nil, nil)
	f, err := feed.New(feed.Options{
		Engine: w.Engine, Register: w.Engine.Register, Blobs: w.Blobs, Pinner: w.Hosted, Clock: time.Now,
		Wait: func(ctx context.Context, _ <-chan struct{}, _ time.Duration) { <-ctx.Done() },
	})
	if err != nil {
		b.Fatal(err)
	}
	o := options(f)
	o.Mounts = []Mount{{Prefix: feed.Prefix, Handler: f, Caller: f.Caller, Live: true, CallTimeout: time.Hour}}
	s, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	l := newPipes()
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	const streams = 500
	for b.Loop() {
		before := memoryInUse()
		var conns []net.Conn
		for range streams {
			c := l.dial("192.0.2.1")
			fmt.Fprintf(c, "GET /v2/sync/changes?app=%s&since=0&live=stream HTTP/1.1\r\nHost: h\r\nAuthorization: Key %s\r\n%s\r\n\r\n", w.App, w.Key, protocol)
			conns = append(conns, c)
			buffer := make([]byte, 64<<10)
			for err := error(nil); err == nil; { // until the stream is idle
				_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				_, err = c.Read(buffer)
			}
		}
		b.ReportMetric(float64(memoryInUse()-before)/streams, "B/stream")
		for _, c := range conns {
			_ = c.Close()
		}
	}
	if err := s.Drain(context.Background()); err != nil {
		b.Error(err)
	}
	if err := <-done; err != nil && err != io.EOF {
		b.Error(err)
	}
}
