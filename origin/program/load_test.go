package program

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// openStalled opens a connection from another address, sends bytes of the n-th kind, and then does nothing.
func openStalled(address string, n int) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+n/250), byte(1+n%250))}
	d := net.Dialer{LocalAddr: from, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	kinds := []string{
		"",
		"GET /v2/models HTTP/1.1\r\nHost: h\r\nX-Slow: ",
		"POST /v2/models/" + generalID + "/outputs HTTP/1.1\r\nHost: h\r\nContent-Length: 60000000\r\n\r\n",
		"POST /v2/models/" + generalID + "/outputs HTTP/1.1\r\nHost: h\r\nContent-Length: 60000000\r\n\r\n" + strings.Repeat("x", 16<<10),
		"POST /v2/models/" + generalID + "/outputs HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4000\r\n" + strings.Repeat("x", 8<<10),
		strings.Repeat("GET /v2/concepts?per_page=200 HTTP/1.1\r\nHost: h\r\nAuthorization: Key "+keyOf(address)+"\r\n\r\n", 3), // never reads
	}
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, kinds[n%len(kinds)]) // the server may not read all of it
	return c, nil
}

// TestLoadStalledConnections opens hundreds of connections that send nothing, half a header or half a body, or that do not read. Another
// caller is never refused. With [testkit.Timing] the server's memory and that caller's latency stay within bounds.
func TestLoadStalledConnections(t *testing.T) {
	_, count := testkit.Rounds(t, 300, 10_000)
	p := startProcess(t)
	address := strings.TrimPrefix(p.base, "http://")
	client := own(t)
	refused := 0
	ask := func(l *latencies, n int) {
		for range n {
			start := time.Now()
			res, err := client.Get(p.base + "/v2/models")
			if err != nil {
				t.Errorf("the innocent: %v", err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 200 {
				refused++
			}
			l.add(time.Since(start))
		}
	}
	var alone, concurrent latencies
	ask(&alone, 300)
	before, _ := p.memory(t)

	conns := make(chan net.Conn, count)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < int64(count); n = next.Add(1) - 1 {
				if c, err := openStalled(address, int(n)); err == nil {
					conns <- c
				}
			}
		})
	}
	ask(&concurrent, 200)
	wg.Wait()
	ask(&concurrent, 1000)
	_, peak := p.memory(t)
	predictOnce := func() {
		if code, out := predictBy(t, client, p.base, generalID, byBase64(sample(t, "04-old-camera.jpg"))); code != 200 {
			t.Errorf("the innocent's prediction: %d %+v", code, out.Status)
		}
	}
	predictOnce()
	stalled := len(conns)
	close(conns)
	for c := range conns {
		_ = c.Close()
	}
	if stalled < count*9/10 {
		t.Errorf("only %d of %d connections could be stalled", stalled, count)
	}
	if grown := peak - before; testkit.Timing() && grown > 256<<20 {
		t.Errorf("the process grew by %d MB, want at most 256", grown>>20)
	}
	if refused > 0 {
		t.Errorf("%d calls of the innocent were refused", refused)
	}
	if got, limit := concurrent.p(99), max(100*time.Millisecond, 5*alone.p(99)); testkit.Timing() && got > limit {
		t.Errorf("the innocent's p99 is %v, want at most %v", got, limit)
	}
	t.Logf("%d stalled, growth %d MB, innocent p99 %v (alone %v)", stalled, (peak-before)>>20, concurrent.p(99), alone.p(99))
}

// load is the result of sending requests for some time.
type load struct {
	good, refused latencies
	late          latencies // delays in sending requests, caused by other work on the machine
	other         atomic.Int64
	took          time.Duration
}

// goodput returns successful answers per second.
func (l *load) goodput() float64 { return float64(l.good.n()) / l.took.Seconds() }

// openLoop sends requests at a rate for a duration d. It does not wait for earlier answers, as users do not wait for each other.
func openLoop(client *http.Client, url string, body []byte, rate float64, d time.Duration) *load {
	l := &load{}
	var wg sync.WaitGroup
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if due.Sub(start) > d {
			break
		}
		system.Pause(context.Background(), time.Until(due))
		wg.Go(func() { l.one(client, url, body, due) })
	}
	wg.Wait()
	l.took = time.Since(start)
	return l
}

// one sends one request. Its latency counts from due, the time at which it should have been sent.
func (l *load) one(client *http.Client, url string, body []byte, due time.Time) {
	l.late.add(time.Since(due))
	res, err := client.Post(url, "application/json", strings.NewReader(string(body)))
	if err != nil {
		l.other.Add(1)
		return
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	switch {
	case err == nil && res.StatusCode == 200:
		l.good.add(time.Since(due))
	case err == nil && res.StatusCode == 503 && res.Header.Get("Retry-After") != "":
		l.refused.add(time.Since(due))
	default:
		l.other.Add(1)
	}
}

// capacity sends requests with enough callers to keep the server busy for a duration d.
func capacity(client *http.Client, url string, body []byte, d time.Duration) *load {
	l := &load{}
	var wg sync.WaitGroup
	start := time.Now()
	for range 4 * system.Cores() {
		wg.Go(func() {
			for time.Since(start) < d {
				l.one(client, url, body, time.Now())
			}
		})
	}
	wg.Wait()
	l.took = time.Since(start)
	return l
}

// TestLoadOverload sends more calls than the server can answer. The server answers nearly as many as it can, once their turn has come, rejects
// at once those that find no place to wait, and recovers soon. The best of three attempts counts, because other work on the machine changes every figure.
func TestLoadOverload(t *testing.T) {
	testkit.RequireTiming(t)
	times, d := 3.0, 3*time.Second
	if testkit.Soaking() {
		_, seconds := testkit.Rounds(t, 3, 60)
		times, d = 10, time.Duration(seconds)*time.Second
	}
	p := startProcess(t, "--log", "error")
	transport := &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 1500}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: keyTransport{transport}, Timeout: time.Minute}
	url := p.base + "/v2/models/" + generalID + "/outputs"
	body := byBase64(dots(t, 17, 24)) // small, because the client that makes the load shares the machine

	var trouble string
	for attempt := range 3 {
		can := capacity(client, url, body, d)
		full := openLoop(client, url, body, can.goodput(), d)
		before, _ := p.memory(t)
		over := openLoop(client, url, body, times*can.goodput(), d)
		_, peak := p.memory(t)
		recovered := recovery(client, url, body, 2*full.good.p(99)+50*time.Millisecond)
		trouble = judge(can, full, over, recovered)
		t.Logf("attempt %d: capacity %.0f/s; at capacity %.0f/s, p99 %v; at %.0f times %.0f/s, p99 %v, %d refused, p99 %v, %d otherwise; timers late by %v; growth %d MB; normal after %v",
			attempt+1, can.goodput(), full.goodput(), full.good.p(99), times, over.goodput(), over.good.p(99),
			over.refused.n(), over.refused.p(99), over.other.Load(), over.late.p(99), (peak-before)>>20, recovered)
		if trouble == "" {
			return
		}
	}
	t.Error(trouble)
}

// placesOfOne is the number of places in which the calls of one caller wait.
const placesOfOne = 512

// judge returns the first goal that the figures miss: goodput of 0.9 of capacity, accepted requests within three times their time at
// capacity and the time for the calls that wait before them, refusals within 50 ms, and recovery within 5 s. The client shares the machine with the server and other programs. So the
// goodput may fall to 0.7, and each limit grows by ten times the delay of the client's own timers.
func judge(can, full, over *load, recovered time.Duration) string {
	tolerance := 10 * over.late.p(99)
	turn := time.Duration(placesOfOne / over.goodput() * float64(time.Second))
	switch {
	case over.goodput() < 0.7*can.goodput():
		return fmt.Sprintf("goodput falls from %.0f/s to %.0f/s", can.goodput(), over.goodput())
	case over.good.p(99) > 3*max(full.good.p(99), 50*time.Millisecond)+turn+tolerance:
		return fmt.Sprintf("the p99 of accepted requests is %v, at capacity %v, and their turn comes after %v", over.good.p(99), full.good.p(99), turn)
	case over.refused.n() == 0:
		return "nothing was refused"
	case over.refused.p(99) > 50*time.Millisecond+tolerance:
		return fmt.Sprintf("refusals take %v at p99", over.refused.p(99))
	case over.other.Load() > 0:
		return fmt.Sprintf("%d requests were neither answered nor refused", over.other.Load())
	case recovered > 5*time.Second:
		return fmt.Sprintf("normal only after %v", recovered)
	}
	return ""
}

// recovery returns the time until a request is answered within usual. It gives up after 10 s.
func recovery(client *http.Client, url string, body []byte, usual time.Duration) time.Duration {
	start := time.Now()
	for time.Since(start) < 10*time.Second {
		var l load
		l.one(client, url, body, time.Now())
		if l.good.n() == 1 && l.good.p(99) <= usual {
			break
		}
	}
	return time.Since(start)
}

// TestLoadSIGTERM stops servers under load. Every answer that a server has sent reaches its client, and the process exits with success.
// With [testkit.Timing] it exits within 10 s.
func TestLoadSIGTERM(t *testing.T) {
	for seed := range testkit.Seeds(t, 3, 100) {
		rnd := rand.New(rand.NewPCG(seed, 18))
		if took := terminateUnderLoad(t, seed, rnd.IntN(300)); testkit.Timing() && took > 10*time.Second {
			t.Errorf("seed %d: the server took %v to stop, want at most 10 s", seed, took)
		}
	}
}

// terminateUnderLoad stops a server under load and returns the time until the process has ended.
func terminateUnderLoad(t *testing.T, seed uint64, answersBefore int) time.Duration {
	t.Helper()
	p := startProcess(t)
	body := byBase64(sample(t, "35-slice-of-pizza.jpg"))
	url := p.base + "/v2/models/" + generalID + "/outputs"
	var answered, cut atomic.Int64
	ending := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			transport := &http.Transport{DisableKeepAlives: caller%2 == 0}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: keyTransport{transport}, Timeout: 20 * time.Second}
			for {
				res, err := client.Post(url, "application/json", strings.NewReader(string(body)))
				if err != nil {
					select {
					case <-ending: // refused or reset by the stopping server
					default:
						t.Errorf("seed %d: before the end: %v", seed, err)
					}
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if err != nil {
					cut.Add(1)
				} else if res.StatusCode == 200 {
					answered.Add(1)
				}
			}
		})
	}
	for answered.Load() < int64(8+answersBefore/10) {
		system.Pause(t.Context(), time.Millisecond)
	}
	system.Pause(t.Context(), time.Duration(answersBefore)*time.Millisecond)
	close(ending)
	took, err := p.terminate(t)
	wg.Wait()
	logged := len(p.lines("method=POST path=/v2/models/" + generalID[:8] + "…/outputs status=200"))
	if err != nil || cut.Load() > 0 || int64(logged) != answered.Load() || len(p.lines("msg=stopped")) != 1 {
		t.Errorf("seed %d: ended with %v after %v; %d answers were sent and %d arrived, %d cut", seed, err, took, logged, answered.Load(), cut.Load())
	}
	t.Logf("seed %d: exit after %v, %d answers sent and arrived", seed, took, logged)
	return took
}
