package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web/process"
)

// TestLoadStoppedReaders has readers of one application of an edge ask for pages of up to 15 MB and read nothing. Another application gets
// each of its pages of 20 inputs with 64 KB of metadata. With [testkit.Timing] the process stays below 1 GB and the other's p99 below three
// times its usual one.
func TestLoadStoppedReaders(t *testing.T) {
	count, inputs := 20, 100
	if testkit.Timing() {
		count, inputs = 200, 250
	}
	binary := own(t)
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "attacked")
	_, other, _ := owner(t, binary, data, "other")
	s := serve(t, binary, data)
	add := func(key string, n, size int) {
		items := make([]object, n)
		for i := range items {
			items[i] = object{"id": fmt.Sprintf("i%d", i), "data": object{
				"image":    object{"url": fmt.Sprintf("http://127.0.0.1:1/%d.png", i)},
				"metadata": object{"text": strings.Repeat("m", size)},
			}}
		}
		for at := 0; at < n; at += 100 {
			s.as(t, key).must("POST", "/v2/inputs", object{"inputs": items[at:min(at+100, n)]})
		}
	}
	add(key, inputs, 60_000)
	add(other, 20, 65_000)
	pages := func(until func() bool) (times []time.Duration) {
		for !until() {
			since := system.Now()
			res, err := http.DefaultClient.Do(request(t, s, other, "/v2/inputs"))
			if err != nil {
				t.Fatal(err)
			}
			n, _ := io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode >= 300 || n < 20*65_000 {
				t.Fatalf("a page of the other application: %d with %d bytes", res.StatusCode, n)
			}
			times = append(times, system.Now().Sub(since))
		}
		return times
	}
	often := func(n int) func() bool { return func() bool { n--; return n < 0 } }
	alone := pages(often(50))
	process.Mute(t, strings.TrimPrefix(s.base, "http://"), count, func(int) string {
		return fmt.Sprintf("GET /v2/inputs?per_page=%d HTTP/1.1\r\nHost: h\r\nAuthorization: Key %s\r\n\r\n", inputs, key)
	})
	until := often(50)
	if testkit.Timing() {
		end := system.Now().Add(attackTime(t))
		until = func() bool { return system.Now().After(end) }
	}
	concurrent := pages(until)
	peak := peakOf(t, s.child(t))
	if testkit.Timing() && peak > 1<<30 {
		t.Errorf("%d MB resident at the peak, want at most 1,024", peak>>20)
	}
	usual, got := p99(alone), p99(concurrent)
	if limit := 3 * max(usual, 10*time.Millisecond); testkit.Timing() && got > limit {
		t.Errorf("the other's p99 is %v, want at most %v", got, limit)
	}
	t.Logf("%d mute readers: %d MB resident at the peak; the other's p99 %v of %d calls, alone %v", count, peak>>20, got, len(concurrent), usual)
}

// attackTime is the duration of a measured attack.
func attackTime(t testing.TB) time.Duration {
	if testkit.Soaking() {
		_, seconds := testkit.Rounds(t, 0, 300)
		return time.Duration(seconds) * time.Second
	}
	return 20 * time.Second
}

func request(t testing.TB, s *server, key, path string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	return req
}

// peakOf returns the largest resident memory of a process so far in bytes, or 0 if the system does not report it.
func peakOf(t testing.TB, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kB, err := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}

func p99(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)*99/100]
}

// TestLoadHostileFiles reads hosted pictures that are made to cost time and memory; see [process.AttackHosted].
func TestLoadHostileFiles(t *testing.T) {
	size, readers := 1<<20, 4
	if testkit.Timing() {
		size, readers = 14<<20, 60
	}
	binary := own(t)
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "attacked")
	s := serve(t, binary, data)
	process.AttackHosted(t, s.base, key, s.child(t), size, readers)
}
