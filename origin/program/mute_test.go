package program

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	programs "github.com/sightline-dev/sightline/web/process"
)

// attackedFor returns the duration of a measured attack.
func attackedFor(t testing.TB) time.Duration {
	if testkit.Soaking() {
		_, seconds := testkit.Rounds(t, 0, 300)
		return time.Duration(seconds) * time.Second
	}
	return 20 * time.Second
}

// heavyInputs adds n inputs with about size bytes of metadata each.
func heavyInputs(t testing.TB, base, key string, n, size int) {
	t.Helper()
	client := own(t)
	for at := 0; at < n; at += 100 {
		items := make([]string, 0, 100)
		for i := at; i < min(at+100, n); i++ {
			items = append(items, fmt.Sprintf(`{"id":"i%d","data":{"image":{"url":"http://127.0.0.1:1/%d.png"},"metadata":{"text":"%s"}}}`, i, i, strings.Repeat("m", size)))
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/v2/inputs", strings.NewReader(`{"inputs":[`+strings.Join(items, ",")+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Key "+key)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("adding inputs: %d %.300s", res.StatusCode, answer)
		}
	}
}

// secondApp creates another application in the folder of a process, and returns its key.
func secondApp(t *testing.T, p *process) string {
	t.Helper()
	code, out, stderr := run(t, nil, "app", "create", "second", "--data", p.data, "--json")
	if code != 0 {
		t.Fatalf("app create: %d\n%s", code, stderr)
	}
	_, id, _ := strings.Cut(out, `"app_id":`)
	id = strings.SplitN(id, `"`, 3)[1]
	code, out, stderr = run(t, nil, "key", "create", "--app", id, "--scopes", "All", "--data", p.data)
	if code != 0 {
		t.Fatalf("key create: %d\n%s", code, stderr)
	}
	return strings.TrimSpace(out)
}

// innocent sends calls until until returns true, and returns the number of answers that are errors.
func innocent(t testing.TB, client *http.Client, call, base, key, body string, l *latencies, until func() bool) (refused int) {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	for !until() {
		start := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Key "+key)
		res, err := client.Do(req)
		if err != nil {
			t.Errorf("the innocent: %v", err)
			return refused
		}
		answer, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode >= 300 { // 207: some pictures failed
			if refused++; refused == 1 {
				t.Errorf("%s: %d %.300s", call, res.StatusCode, answer)
			}
		}
		l.add(time.Since(start))
	}
	return refused
}

func times(n int) func() bool { return func() bool { n--; return n < 0 } }

// TestLoadStoppedReaders makes readers of one application request pages of up to 15 MB and read nothing. Another application gets each of
// its pages of 20 inputs with 64 KB of metadata. With [testkit.Timing] the process stays below 1 GB, and the other application's p99 stays
// below three times its usual value.
func TestLoadStoppedReaders(t *testing.T) {
	count, inputs := 20, 100
	if testkit.Timing() {
		count, inputs = 200, 250
	}
	p := startProcess(t)
	address, key := strings.TrimPrefix(p.base, "http://"), secondApp(t, p)
	heavyInputs(t, p.base, keyOf(address), inputs, 60_000)
	heavyInputs(t, p.base, key, 20, 65_000)
	client := own(t)
	var alone, concurrent latencies
	innocent(t, client, "GET /v2/inputs", p.base, key, "", &alone, times(50))

	programs.Mute(t, address, count, func(int) string {
		return fmt.Sprintf("GET /v2/inputs?per_page=%d HTTP/1.1\r\nHost: h\r\nAuthorization: Key %s\r\n\r\n", inputs, keyOf(address))
	})
	until := times(50)
	if testkit.Timing() {
		end := time.Now().Add(attackedFor(t))
		until = func() bool { return time.Now().After(end) }
	}
	if refused := innocent(t, client, "GET /v2/inputs", p.base, key, "", &concurrent, until); refused > 0 {
		t.Errorf("%d of %d pages of the other application were refused", refused, concurrent.n())
	}
	_, peak := p.memory(t)
	if testkit.Timing() && peak > 1<<30 {
		t.Errorf("%d MB resident at the peak, want at most 1,024", peak>>20)
	}
	if got, limit := concurrent.p(99), 3*max(alone.p(99), 10*time.Millisecond); testkit.Timing() && got > limit {
		t.Errorf("the other's p99 is %v, want at most %v", got, limit)
	}
	t.Logf("%d mute readers: %d MB resident at the peak; the other's p99 %v of %d calls, alone %v", count, peak>>20, concurrent.p(99), concurrent.n(), alone.p(99))
}

// TestLoadUnauthenticatedBodies makes unauthenticated clients begin bodies and then stop sending: on a path that needs a credential, on one
// that does not, and without a length. The server accepts all bodies of an application.
func TestLoadUnauthenticatedBodies(t *testing.T) {
	count := 60
	t.Setenv("GOMEMLIMIT", "512MiB") // of the process: the server derives the budget for bodies from it
	p := startProcess(t)
	address := strings.TrimPrefix(p.base, "http://")
	client := own(t)
	body := string(byBase64(dots(t, 17, 24)))
	body = body[:len(body)-1] + `,"padding":"` + strings.Repeat("p", 5<<20) + `"}`
	call := "POST /v2/models/" + generalID + "/outputs"
	var alone, concurrent latencies
	innocent(t, client, call, p.base, keyOf(address), body, &alone, times(10))

	programs.Mute(t, address, count, func(n int) string {
		head := []string{
			call + " HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n",
			call + " HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n",
			"POST /v2/login HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n",
			"POST /v2/token HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nf0000\r\n",
		}[n%4]
		return head + strings.Repeat("x", 100<<10)
	})
	until := times(20)
	if testkit.Timing() {
		end := time.Now().Add(attackedFor(t))
		until = func() bool { return time.Now().After(end) }
	}
	refused := innocent(t, client, call, p.base, keyOf(address), body, &concurrent, until)
	if refused > 0 {
		t.Errorf("%d of %d bodies with a key were refused", refused, concurrent.n())
	}
	if got, limit := concurrent.p(99), 3*max(alone.p(99), 50*time.Millisecond); testkit.Timing() && got > limit {
		t.Errorf("the p99 of calls with a key is %v, want at most %v", got, limit)
	}
	_, peak := p.memory(t)
	t.Logf("%d bodies of strangers: %d MB resident at the peak; p99 with a key %v of %d calls, alone %v", count, peak>>20, concurrent.p(99), concurrent.n(), alone.p(99))
}

// TestLoadHostileFiles reads hosted pictures that are made to cost time and memory; see [programs.AttackHosted].
func TestLoadHostileFiles(t *testing.T) {
	size, readers := 1<<20, 4
	if testkit.Timing() {
		size, readers = 14<<20, 60
	}
	p := startProcess(t)
	programs.AttackHosted(t, p.base, keyOf(strings.TrimPrefix(p.base, "http://")), p.cmd.Process.Pid, size, readers)
}
