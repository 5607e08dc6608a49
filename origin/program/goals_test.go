package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
)

// unreachable is a network without a reachable host. It counts the attempts to connect.
type unreachable struct {
	answers map[string][]netip.Addr
	dialed  atomic.Int64
}

func (u *unreachable) network() server.Network {
	return server.Network{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			if a, ok := u.answers[host]; ok {
				return a, nil
			}
			return nil, fmt.Errorf("no such host %q", host)
		},
		Dial: func(_ context.Context, network, address string, control func(network, address string) error) (net.Conn, error) {
			if err := control(network, address); err != nil {
				return nil, err
			}
			u.dialed.Add(1)
			return nil, fmt.Errorf("dialled %s", address)
		},
	}
}

// TestHostileBodiesAtOrigin sends randomly mutated requests, one for each seed. No answer is a 5xx or lacks the envelope, no handler
// panics, and the server survives.
func TestHostileBodiesAtOrigin(t *testing.T) {
	from, rounds := testkit.Rounds(t, 5_000, 200_000)
	s := testSettings(t)
	s.Network = (&unreachable{}).network()
	_, base := startOrigin(t, s)
	client := own(t)
	picture := dots(t, 3, 8)

	var next atomic.Uint64
	var wrong, good atomic.Int64
	next.Store(from)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < from+uint64(rounds) && wrong.Load() < 10; seed = next.Add(1) - 1 {
				status, trouble := bent(client, base, picture, seed)
				if trouble != "" {
					wrong.Add(1)
					t.Errorf("seed %d: %d %s", seed, status, trouble)
				}
				if status == 200 {
					good.Add(1)
				}
			}
		})
	}
	wg.Wait()
	res, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatalf("the server is dead: %v", err)
	}
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if !strings.Contains(string(b), "sightline_http_panics_total 0\n") {
		t.Error("there were panics")
	}
	t.Logf("seeds %d to %d, %d answered well, %d wrong", from, from+uint64(rounds)-1, good.Load(), wrong.Load())
}

// bent sends one mutated request and returns its status and the fault of its answer. trouble is empty if there is none.
func bent(client *http.Client, base string, picture []byte, seed uint64) (status int, trouble string) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	method, path, body := bend(rnd, picture)
	req, err := http.NewRequest(method, base+path, bytes.NewReader(body))
	if err != nil {
		return 0, "" // the client will not send such a path
	}
	req.Header.Set("Content-Type", []string{"application/json", "", "text/plain", "application/x-www-form-urlencoded"}[rnd.IntN(4)])
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err.Error()
	}
	var envelope struct{ Status struct{ Code int } }
	if err := json.Unmarshal(b, &envelope); err != nil || envelope.Status.Code == 0 {
		return res.StatusCode, fmt.Sprintf("no envelope for %s %s %.300q: %.300q", method, path, body, b)
	}
	if res.StatusCode >= 500 {
		return res.StatusCode, fmt.Sprintf("for %s %s %.300q: %.300q", method, path, body, b)
	}
	return res.StatusCode, ""
}

// bend makes a mutated request from a valid one.
func bend(rnd *rand.Rand, picture []byte) (method, path string, body []byte) {
	right := []struct {
		method, path string
		body         []byte
	}{
		{"POST", "/v2/models/" + generalID + "/outputs", byBase64(picture)},
		{"POST", "/v2/models/" + generalID + "/outputs", byURL("http://127.0.0.1/x.jpg", "https://pictures.example/y.png")},
		{"POST", "/v2/models/" + colorID + "/outputs", []byte(`{"inputs":[{"id":"a","data":{"image":{"base64":"` + "iVBORw0KGgo=" + `","crop":[0.1,0.2,0.9,0.8]}}}],"model":{"output_info":{"output_config":{"language":"en","max_concepts":3,"min_value":0.5,"select_concepts":[{"id":"x"},{"name":"y"}]}}}}`)},
		{"POST", "/v2/models/searches?page=1&per_page=2", []byte(`{"model_query":{"name":"gen*","type":"concept"}}`)},
		{"POST", "/v2/concepts/searches", []byte(`{"concept_query":{"name":"dog*","language":"de"}}`)},
		{"GET", "/v2/models?page=1&per_page=3", nil},
		{"GET", "/v2/models/" + generalID + "/output_info", nil},
		{"GET", "/v2/concepts/ai_mFqxrph2", nil},
	}
	r := right[rnd.IntN(len(right))]
	method, path, body = r.method, r.path, bytes.Clone(r.body)
	if rnd.IntN(8) == 0 {
		method = []string{"GET", "PUT", "PATCH", "DELETE", "POST", "OPTIONS"}[rnd.IntN(6)]
	}
	if rnd.IntN(6) == 0 {
		p := []byte(path)
		p[4+rnd.IntN(len(p)-4)] = "/%?&=a0.~*"[rnd.IntN(10)]
		path = string(p)
	}
	odd := []string{
		"null", "[]", "{}", "1e999", "-0", "\"\\ud800\"", "\xff\xfe", "\x00", "18446744073709551616", "true", "\"\"", ",", ":", "[[[[",
		strings.Repeat("[", 100), strings.Repeat(`{"a":`, 70), `"` + strings.Repeat("x", 300) + `"`, `"inputs":[],`, "\\u0000", "0.1e-400", "NaN",
	}
	for range rnd.IntN(5) {
		if len(body) == 0 {
			body = []byte(odd[rnd.IntN(len(odd))])
			continue
		}
		at := rnd.IntN(len(body))
		switch rnd.IntN(5) {
		case 0:
			body[at] ^= 1 << rnd.IntN(8)
		case 1:
			body = body[:at]
		case 2:
			end := min(len(body), at+rnd.IntN(20))
			body = append(body[:at:at], body[end:]...)
		case 3:
			end := min(len(body), at+rnd.IntN(40))
			body = append(body[:end:end], append(bytes.Clone(body[at:end]), body[end:]...)...)
		case 4:
			body = append(body[:at:at], append([]byte(odd[rnd.IntN(len(odd))]), body[at:]...)...)
		}
	}
	return method, path, body
}

// TestSSRFEndpoints sends the corpus of package fetch to the endpoint that accepts URLs, 128 in a call. The server makes no connection, and
// answers differ only in whether the text is a URL.
func TestSSRFEndpoints(t *testing.T) {
	u := &unreachable{answers: map[string][]netip.Addr{}}
	var urls []string
	file, err := os.ReadFile("../server/fetch/testdata/ssrf.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		quoted, answers, hasAnswers := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		raw, err := strconv.Unquote(quoted)
		if err != nil {
			continue // a line with a comment
		}
		urls = append(urls, raw)
		if !hasAnswers {
			continue
		}
		_, rest, _ := strings.Cut(raw, "//")
		host, _, _ := strings.Cut(rest, "/")
		for _, a := range strings.FieldsFunc(answers, func(r rune) bool { return r == ',' }) {
			u.answers[strings.ToLower(host)] = append(u.answers[strings.ToLower(host)], netip.MustParseAddr(a))
		}
	}
	s := testSettings(t)
	s.Network = u.network()
	_, base := startOrigin(t, s)
	client := own(t)
	seen := map[int]int{}
	details := "" // details of every failed fetch
	for start := 0; start < len(urls); start += 128 {
		end := min(start+128, len(urls))
		code, out := predictBy(t, client, base, generalID, byURL(urls[start:end]...))
		if code != 400 || len(out.Outputs) != end-start {
			t.Errorf("%d to %d: %d with %d outputs, want 400 with all", start, end, code, len(out.Outputs))
			continue
		}
		for i, o := range out.Outputs {
			seen[o.Status.Code]++
			if c := o.Status.Code; c != 30002 && c != 30104 && c != 30106 {
				t.Errorf("%q: status %d", urls[start+i], c)
			}
			if o.Status.Code != 30002 {
				continue
			}
			if details == "" {
				details = o.Status.Details
			}
			if o.Status.Details != details {
				t.Errorf("%q: details of its own: %s", urls[start+i], o.Status.Details)
			}
		}
	}
	if n := u.dialed.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	t.Logf("%d payloads at the predict endpoint, %d hits, statuses %v", len(urls), u.dialed.Load(), seen)
}

// TestLeaksFileHandles opens and closes 1,000 connections and some servers. No file handle remains open, and TestMain checks that no
// goroutine is left.
func TestLeaksFileHandles(t *testing.T) {
	_, rounds := testkit.Rounds(t, 1_000, 10_000)
	handles := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("no list of file handles on this system: %v", err)
		}
		return len(names)
	}
	round := func(connections int) {
		srv, base := startOrigin(t, testSettings(t))
		transport := &http.Transport{DisableKeepAlives: true}
		client := &http.Client{Transport: keyTransport{transport}}
		for range connections {
			res, err := client.Get(base + "/v2/models")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if _, out := predictBy(t, client, base, generalID, byBase64(dots(t, 5, 16))); len(out.Outputs) == 1 {
			res, err := client.Get(out.Outputs[0].Input.Data.Image.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close() // unread: the server must close the file anyway
		}
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	}
	round(1) // opens the files that stay open for the whole process
	before := handles()
	for range 4 {
		round(rounds / 4)
	}
	if after := handles(); after > before {
		t.Errorf("%d file handles are open, %d before", after, before)
	}
	t.Logf("%d connections, 4 servers, no handle left of %d", rounds, before)
}
