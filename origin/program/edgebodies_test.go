package program

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// signingEdge is an enrolled edge of the first application of a server.
type signingEdge struct {
	t      testing.TB
	base   string
	http   *http.Client
	key    ed25519.PrivateKey
	id     string
	app    string
	writer log.Writer
	secret []byte
	head   bool // sends Sync-Head
}

// enrolSigner creates an edge in a data folder and enrols it at its server.
func enrolSigner(t testing.TB, base, data string) *signingEdge {
	t.Helper()
	var made madeEdge
	decode(t, mustRun(t, "edge", "create", "shop", "--data", data, "--json"), &made)
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	e := &signingEdge{t: t, base: base, http: &http.Client{Transport: transport, Timeout: time.Minute}, key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), id: made.ID, app: made.Apps[0]}
	enrol(t, e.http, base, made.ID, made.Token, e.key)
	app, err := catalog.ParseAppID(e.app)
	if err != nil {
		t.Fatal(err)
	}
	e.secret = bytes.Repeat([]byte{7}, partition.SecretSize)
	e.writer = partition.WriterOf(app, e.secret)
	return e
}

// enrol enrols an edge with its token, and returns the origin's reply.
func enrol(t testing.TB, client *http.Client, base, id, token string, key ed25519.PrivateKey) (reply feed.EnrolReply) {
	t.Helper()
	res, err := client.Post(base+"/v2/sync/enrol", "application/json", bytes.NewReader(feed.Enrolment(key, token)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&reply); err != nil || reply.Edge.ID != id {
		t.Fatalf("enrolled %+v, %v", reply, err)
	}
	return reply
}

// send sends a signed request, and returns the status and the body of the answer.
func (e *signingEdge) send(method, path, query string, body []byte) (status int, answer []byte) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.base+path+"?"+query, bytes.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	now := system.Now()
	req.Header.Set("Accept", wire.ContentType)
	req.Header.Set("Sync-Protocol", "2")
	if len(body) > 1<<20 { // otherwise a connection that is closed early can hide the answer
		req.Header.Set("Expect", "100-continue")
	}
	req.Header.Set("Authorization", feed.Sign(e.key, e.id, now, method, path, query, body))
	if e.head {
		req.Header.Set(feed.HeadHeader, feed.SignHead(e.key, now, method, path, query, len(body)))
	}
	res, err := e.http.Do(req)
	if err != nil {
		e.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		e.t.Fatal(err)
	}
	return res.StatusCode, answer
}

// session begins a session, and returns the opening of the log.
func (e *signingEdge) session() log.Epoch {
	e.t.Helper()
	m := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: e.app}}}
	status, answer := e.send("POST", "/v2/sync/session", "", m.Encode())
	reply, err := wire.DecodeSessionReply(answer)
	if status != 200 || err != nil || len(reply.Grants) != 1 {
		e.t.Fatalf("session: %d %q, %v", status, answer, err)
	}
	return reply.Grants[0].Opening
}

// push pushes operations until the log has all of them.
func (e *signingEdge) push(opening log.Epoch, ops []log.Op) {
	e.t.Helper()
	for len(ops) > 0 {
		m := wire.Push{App: e.app, Opening: opening, Writer: e.writer, Secret: e.secret, Rows: log.EncodeRows(ops)}
		status, answer := e.send("POST", "/v2/sync/push", "", m.Encode())
		got, err := wire.DecodePushed(answer)
		if status != 200 || err != nil || len(got.Verdicts) > 0 || got.Accepted < ops[0].Dot.Seq {
			e.t.Fatalf("push: %d %.300q, %+v, %v", status, answer, got, err)
		}
		ops = ops[got.Accepted-ops[0].Dot.Seq+1:]
	}
}

// upload sends pictures, and returns the operations that create their inputs.
func (e *signingEdge) upload(n int) []log.Op {
	e.t.Helper()
	ops := make([]log.Op, n)
	for i := range ops {
		data := dots(e.t, uint64(i+1), 16)
		h := blob.Sum(data)
		if status, answer := e.send("PUT", "/v2/sync/blobs/"+h.String(), "app="+e.app+"", data); status != 201 {
			e.t.Fatalf("picture %d: %d %q", i, status, answer)
		}
		ops[i] = log.Op{
			Dot: log.Dot{Writer: e.writer, Seq: uint64(i + 1)}, At: log.HLC(system.Now().UnixMilli()) << 16,
			Body: &log.InputCreate{ID: fmt.Sprint("i", i), Blob: h, ContentType: "image/png"},
		}
	}
	return ops
}

// TestEdgesWithoutHeadSignature: an edge that sends no Sync-Head sends pictures in parts of 1 MiB at once, and larger bodies after its
// first request. An edge with Sync-Head sends them at once.
func TestEdgesWithoutHeadSignature(t *testing.T) {
	s := testSettings(t)
	_, base := startOrigin(t, s)
	e := enrolSigner(t, base, s.Data)
	large := bytes.Repeat([]byte("x"), 4<<20)
	part := large[:1<<20]
	if status, answer := e.send("POST", "/v2/sync/push", "", large); status != 413 {
		t.Errorf("4 MB before a session: %d %.300q", status, answer)
	}
	e.head = true
	if status, answer := e.send("POST", "/v2/sync/push", "", large); status != 400 { // read, and no message
		t.Errorf("4 MB with Sync-Head: %d %.300q", status, answer)
	}
	e = enrolSigner(t, base, s.Data)
	if status, answer := e.send("PUT", "/v2/sync/blobs/"+blob.Sum(part).String(), "app="+e.app+"", part); status != 201 {
		t.Errorf("a part of a picture before a session: %d %q", status, answer)
	}

	e = enrolSigner(t, base, s.Data)
	epoch := e.session()
	ops := e.upload(testkit.Size(t, 40, 100, 2000, 2000))
	for at := 0; at < len(ops); at += wire.MaxOps {
		e.push(epoch, ops[at:min(at+wire.MaxOps, len(ops))])
	}
	picture := ops[0].Body.(*log.InputCreate).Blob
	heavy := make([]log.Op, 70)
	for i := range heavy {
		heavy[i] = log.Op{
			Dot: log.Dot{Writer: e.writer, Seq: uint64(len(ops) + i + 1)}, At: log.HLC(system.Now().UnixMilli()) << 16,
			Body: &log.InputCreate{
				ID: fmt.Sprint("heavy", i), Blob: picture, ContentType: "image/png",
				Meta: fmt.Appendf(nil, `{"n":%d,"text":%q}`, i, strings.Repeat("m", 62_000)),
			},
		}
	}
	if n := len(log.EncodeRows(heavy)); n < 4<<20 {
		t.Fatalf("the push has %d bytes", n)
	}
	e.push(epoch, heavy)
}

// TestLoadForgedEdges makes eleven connections send bodies of 95 MB with the ID of an edge and a forged signature. The server refuses them
// before it reads the bodies. With [testkit.Timing] the process takes at most 16 MB more.
func TestLoadForgedEdges(t *testing.T) {
	p := startProcess(t)
	e := enrolSigner(t, p.base, p.data)
	before, _ := p.memory(t)
	peak := before
	var all sync.WaitGroup
	ended := make(chan struct{})
	for n := range 11 {
		all.Go(func() { e.forge(n) })
	}
	go func() {
		all.Wait()
		close(ended)
	}()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(time.Millisecond):
		}
		now, _ := p.memory(t)
		peak = max(peak, now)
	}
	if more := peak - before; testkit.Timing() && more > 16<<20 {
		t.Errorf("%d MB more are resident, want at most 16", more>>20)
	}
	t.Logf("11 forged bodies: %d MB more resident", (peak-before)>>20)
}

// forge sends a request with a forged signature and a body of 95 MB but for its end. The test fails unless the server closes the connection
// before. The connection stays open until the test ends.
func (e *signingEdge) forge(n int) {
	const size = 95_000_000
	head, piece := fmt.Sprintf("Content-Length: %d", size), bytes.Repeat([]byte("x"), 64<<10)
	if n%3 == 2 {
		head, piece = "Transfer-Encoding: chunked", slices.Concat([]byte("10000\r\n"), piece, []byte("\r\n"))
	}
	if n%2 == 1 {
		head += fmt.Sprintf("\r\nSync-Head: %0128d", 0)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(e.base, "http://"))
	if err != nil {
		e.t.Error(err)
		return
	}
	e.t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST /v2/sync/push HTTP/1.1\r\nHost: h\r\nAuthorization: Edge %s %d %0128d\r\n%s\r\n\r\n", e.id, system.Now().UnixMilli(), 0, head)
	for sent := 0; err == nil; sent += len(piece) {
		if sent+len(piece) >= size {
			e.t.Errorf("connection %d: the server read %d bytes", n, sent)
			return
		}
		_, err = c.Write(piece)
	}
}
