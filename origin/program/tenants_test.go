package program

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// tenant is an application whose texts all contain its mark. No text of another application contains it.
type tenant struct{ mark, key string }

// newTenants creates n applications with two inputs, a concept and a model each.
func newTenants(t testing.TB, srv *server.Server, base string, n int) []tenant {
	t.Helper()
	client := own(t)
	all := make([]tenant, n)
	for i := range all {
		mark := "mark" + hex.EncodeToString([]byte{byte(i), byte(i * 7), byte(i * 31)})
		app, err := control.CreateApp.Do(t.Context(), srv, register.NewApp{Name: mark, Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		key, err := control.CreateKey.Do(t.Context(), srv, register.NewKey{App: app.App.ID, Scopes: []string{"All"}, Description: mark})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = tenant{mark, key.Key}
		for path, body := range map[string]string{
			"/v2/inputs": fmt.Sprintf(`{"inputs":[{"id":"%[1]s-a","data":{"image":{"base64":"%[2]s"},"metadata":{"of":"%[1]s"},"concepts":[{"id":"%[1]s-c"}]}},
				{"id":"%[1]s-b","data":{"image":{"base64":"%[2]s"},"metadata":{"of":"%[1]s"}}}]}`,
				mark, base64.StdEncoding.EncodeToString(dots(t, uint64(i), 16))),
			"/v2/models": fmt.Sprintf(`{"model":{"id":"%[1]s-m","name":"%[1]s","output_info":{"data":{"concepts":[{"id":"%[1]s-c"}]}}}}`, mark),
		} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Key "+key.Key)
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%s: %d, %.300s, %v", path, res.StatusCode, answer, err)
			}
		}
	}
	return all
}

// question is a request of a tenant with its expected answer.
type question struct {
	of      tenant
	method  string
	path    string
	body    string
	key     string
	status  int
	hasMark bool   // the answer holds the tenant's mark
	echo    string // ID of another tenant's input in the request itself
}

// drawQuestion returns a random request of one tenant, sometimes for data of another.
func drawQuestion(rnd *rand.Rand, all []tenant) question {
	me, other := all[rnd.IntN(len(all))], all[rnd.IntN(len(all))]
	a := question{of: me, method: "GET", key: me.key, status: 200, hasMark: true}
	foreign := me != other
	switch rnd.IntN(10) {
	case 0:
		a.path = "/v2/inputs"
	case 1:
		a.path = "/v2/inputs/" + me.mark + "-a"
	case 2:
		a.path, a.echo = "/v2/inputs/"+other.mark+"-b", other.mark+"-b"
		if foreign {
			a.status, a.hasMark = 404, false
		}
	case 3:
		a.path, a.echo = "/v2/models/"+other.mark+"-m", other.mark+"-m"
		if foreign {
			a.status, a.hasMark = 404, false
		}
	case 4:
		a.path = "/v2/concepts?per_page=2" // the tenant's concepts come first
	case 5:
		a.method, a.path = "POST", "/v2/searches"
		a.body = fmt.Sprintf(`{"query":{"ands":[{"input":{"data":{"metadata":{"of":"%s"}}}}]}}`, other.mark)
		a.hasMark = !foreign
	case 6:
		a.method, a.path = "PATCH", "/v2/inputs"
		a.body = fmt.Sprintf(`{"action":"merge","inputs":[{"id":"%[1]s-a","data":{"metadata":{"n":%[2]d,"of":"%[1]s"}}}]}`, me.mark, rnd.IntN(1000))
	case 7:
		a.method, a.path = "POST", "/v2/concepts/searches"
		a.body = fmt.Sprintf(`{"concept_query":{"name":"%s*"}}`, other.mark[:4])
	case 8:
		a.path, a.status, a.hasMark = "/v2/inputs", 401, false
		a.key = strings.Repeat(fmt.Sprintf("%x", rnd.IntN(16)), 32)
	case 9:
		a.method, a.path, a.body = "POST", "/v2/models/searches", `{"model_query":{"name":"mark*"}}`
	}
	return a
}

// write sends the request to w.
func (a *question) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s %s HTTP/1.1\r\nHost: tenants.test\r\nAuthorization: Key %s\r\nContent-Length: %d\r\n\r\n%s", a.method, a.path, a.key, len(a.body), a.body)
	return err
}

// wrong returns the fault of an answer, or an empty text.
func (a *question) wrong(status int, answer []byte, all []tenant) string {
	if status != a.status || !json.Valid(answer) || !bytes.HasPrefix(answer, []byte(`{"status":{"code":`)) {
		return fmt.Sprintf("status %d, want %d", status, a.status)
	}
	rest := answer
	if a.echo != "" {
		rest = bytes.ReplaceAll(answer, []byte(a.echo), nil)
	}
	for _, b := range all {
		if b != a.of && bytes.Contains(rest, []byte(b.mark)) {
			return "it holds " + b.mark
		}
	}
	if a.hasMark != bytes.Contains(answer, []byte(a.of.mark)) {
		return fmt.Sprintf("its own mark: %v, want %v", !a.hasMark, a.hasMark)
	}
	return ""
}

// TestTenantsInterleaved calls several applications over the same connections, pipelined and concurrently, so that requests share buffers.
// Each caller gets only the data of its application.
func TestTenantsInterleaved(t *testing.T) {
	seed, total := testkit.Rounds(t, 5_000, 1_000_000)
	srv, base := startOrigin(t, testSettings(t))
	all := newTenants(t, srv, base, 5)
	var left atomic.Int64
	left.Store(int64(total))
	var connections sync.WaitGroup
	for i := range uint64(8) {
		connections.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, i))
			for left.Load() > 0 && !t.Failed() {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
				if err == nil {
					err = errors.Join(interleave(conn, rnd, all, &left), conn.Close())
				}
				if err != nil {
					t.Errorf("connection %d of seed %d: %v", i, seed, err)
				}
			}
		})
	}
	connections.Wait()
}

// interleave sends requests over one connection, up to eight at once, until left is used up.
func interleave(conn net.Conn, rnd *rand.Rand, all []tenant, left *atomic.Int64) error {
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for requests := 0; requests < 9_000; { // the server ends a connection after 10,000
		batch := make([]question, 1+rnd.IntN(8))
		if left.Add(-int64(len(batch))) < 0 {
			return nil
		}
		for i := range batch {
			batch[i] = drawQuestion(rnd, all)
			if err := batch[i].write(out); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		for i := range batch {
			a := &batch[i]
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return err
			}
			answer, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				return err
			}
			if trouble := a.wrong(res.StatusCode, answer, all); trouble != "" {
				return fmt.Errorf("%s %s %s for %s: %s in %.400s", a.method, a.path, a.body, a.of.mark, trouble, answer)
			}
		}
		requests += len(batch)
	}
	return nil
}
