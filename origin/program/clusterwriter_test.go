package program

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// fate is the knowledge of a writer about one of its calls.
type fate int

const (
	refused fate = iota // the answer shows that the call changed nothing
	unknown             // no answer, or one by which the write may have happened
	done                // acknowledged
)

// written is the knowledge of a writer about one of its inputs.
type written struct {
	added, deleted fate
	numbers        map[int]fate // numbers that the writer appended to the list in the input's metadata
	picture        [sha256.Size]byte
}

// clusterWriter is a client of a cluster. It adds inputs, appends numbers to the list in their metadata, and deletes some, one call at a time. It
// repeats no call. After a call without an answer it uses the next node.
type clusterWriter struct {
	t      testing.TB
	name   string
	key    string
	rnd    *rand.Rand
	client *http.Client
	bases  []string
	at     int
	serial int
	inputs map[string]*written
	usable []string // inputs that exist, as far as the writer knows

	calls [done + 1]int  // by fate
	why   map[string]int // answers other than success, by their text
	acked atomic.Int64

	mu   sync.Mutex
	last time.Time     // of the last acknowledged call; zero: none
	gap  time.Duration // longest time between two acknowledged calls

	sends func(method string, body []byte) fate // makes a call; nil: over HTTP
}

func (c *nodes) newWriter(name string, first int, seed uint64) *clusterWriter {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &clusterWriter{
		t: c.t, name: name, key: c.key, rnd: rand.New(rand.NewPCG(seed, h.Sum64())), client: c.client, bases: c.bases(first),
		inputs: map[string]*written{}, why: map[string]int{},
	}
}

// call sends a change and returns its fate.
func (w *clusterWriter) call(method string, body any) fate {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // it has no unusual value
	}
	send := w.send
	if w.sends != nil {
		send = w.sends
	}
	f := send(method, b)
	w.calls[f]++
	now := system.Now()
	if f == done {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.last.IsZero() {
			w.gap = max(w.gap, now.Sub(w.last))
		}
		w.last = now
		w.acked.Add(1)
	}
	return f
}

// takeGap returns the longest time between two acknowledged calls since the last takeGap.
func (w *clusterWriter) takeGap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	gap := w.gap
	w.gap = 0
	return gap
}

// send makes a call over HTTP.
func (w *clusterWriter) send(method string, b []byte) fate {
	req, err := http.NewRequest(method, w.bases[w.at]+"/v2/inputs", bytes.NewReader(b))
	if err != nil {
		panic(err) // the URL is that of a node
	}
	req.Header.Set("Authorization", "Key "+w.key)
	res, err := w.client.Do(req)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err != nil {
		w.at = (w.at + 1) % len(w.bases)
		system.Pause(w.t.Context(), 5*time.Millisecond)
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return refused
		}
		w.why["no answer"]++
		return unknown
	}
	switch {
	case res.StatusCode == http.StatusOK:
		return done
	case res.StatusCode != http.StatusServiceUnavailable:
		w.t.Errorf("%s %s at %s: %d %.500s", method, b[:min(len(b), 200)], w.bases[w.at], res.StatusCode, answer)
		return unknown
	case res.Header.Get("Retry-After") == "":
		w.t.Errorf("%s at %s: 503 without Retry-After: %.500s", method, w.bases[w.at], answer)
	}
	var text struct {
		Status struct{ Description, Details string }
	}
	_ = json.Unmarshal(answer, &text) // any other text has no details
	w.why[cmp.Or(text.Status.Details, text.Status.Description)]++
	system.Pause(w.t.Context(), 5*time.Millisecond)
	if strings.Contains(string(answer), "may have happened") {
		return unknown
	}
	return refused
}

// step makes one change.
func (w *clusterWriter) step() {
	kind := w.rnd.IntN(10)
	switch {
	case len(w.usable) == 0 || kind < 3:
		w.add()
	case kind < 9:
		w.append(w.usable[w.rnd.IntN(len(w.usable))])
	default:
		i := w.rnd.IntN(len(w.usable))
		id := w.usable[i]
		w.usable = slices.Delete(w.usable, i, i+1)
		w.inputs[id].deleted = w.call("DELETE", cli.Object{"ids": []string{id}})
		if w.inputs[id].deleted == refused {
			w.usable = append(w.usable, id)
		}
	}
}

func encoded(picture []byte) string { return base64.StdEncoding.EncodeToString(picture) }

// add adds an input with its own picture.
func (w *clusterWriter) add() {
	w.serial++
	id := fmt.Sprintf("%s-%d", w.name, w.serial)
	picture := dots(w.t, w.rnd.Uint64(), 16)
	in := &written{numbers: map[int]fate{}, picture: sha256.Sum256(picture)}
	w.inputs[id] = in
	in.added = w.call("POST", cli.Object{"inputs": []cli.Object{{"id": id, "data": cli.Object{
		"image": cli.Object{"base64": encoded(picture)}, "metadata": cli.Object{"numbers": []int{}},
	}}}})
	if in.added == done {
		w.usable = append(w.usable, id)
	}
}

// append appends a new number to the list in an input's metadata.
func (w *clusterWriter) append(id string) {
	w.serial++
	n := w.serial
	w.inputs[id].numbers[n] = w.call("PATCH", cli.Object{"action": "merge", "inputs": []cli.Object{
		{"id": id, "data": cli.Object{"metadata": cli.Object{"numbers": []int{n}}}},
	}})
}

// listed is an input, as a list has it.
type listed struct {
	ID   string
	Data struct {
		Image    struct{ URL string }
		Metadata struct{ Numbers []int }
	}
}

// check compares a list of all inputs with the fates of the calls of the writer.
func (w *clusterWriter) check(all map[string]listed) {
	w.t.Helper()
	prefix := w.name + "-"
	for id := range all {
		if strings.HasPrefix(id, prefix) && w.inputs[id] == nil {
			w.t.Errorf("%s: an input that nobody has added", id)
		}
	}
	for id, in := range w.inputs {
		got, exists := all[id]
		switch {
		case exists && in.added == refused:
			w.t.Errorf("%s: exists, but the call was refused", id)
		case exists && in.deleted == done:
			w.t.Errorf("%s: was deleted and is back", id)
		case !exists && in.added == done && in.deleted == refused:
			w.t.Errorf("%s: is lost", id)
		}
		if !exists {
			continue
		}
		times := map[int]int{}
		for _, n := range got.Data.Metadata.Numbers {
			times[n]++
			if _, ok := in.numbers[n]; !ok {
				w.t.Errorf("%s: has the number %d, which nobody has appended", id, n)
			}
		}
		for n, f := range in.numbers {
			switch {
			case times[n] > 1:
				w.t.Errorf("%s: has the number %d %d times; its call: %d", id, n, times[n], f)
			case times[n] == 1 && f == refused:
				w.t.Errorf("%s: has the number %d, whose call was refused", id, n)
			case times[n] == 0 && f == done:
				w.t.Errorf("%s: the number %d is lost", id, n)
			}
		}
	}
}

// list returns all inputs at a node.
func (c *nodes) list(n *node) map[string]listed {
	c.t.Helper()
	all := map[string]listed{}
	for page := 1; ; page++ {
		var answer struct{ Inputs []listed }
		c.get(n, fmt.Sprintf("/v2/inputs?page=%d&per_page=1000", page), &answer)
		for _, in := range answer.Inputs {
			if _, twice := all[in.ID]; twice {
				c.t.Errorf("%s is listed twice at node %d", in.ID, n.number)
			}
			all[in.ID] = in
		}
		if len(answer.Inputs) < 1000 {
			return all
		}
	}
}

// get asks a node, and repeats the question while the answer is "try again".
func (c *nodes) get(n *node, path string, answer any) {
	c.t.Helper()
	var code int
	var b []byte
	c.wait(fmt.Sprintf("GET %s at node %d", path, n.number), func() (ok bool) {
		code, b = c.fetch(n.base + path)
		return code == http.StatusOK
	})
	if err := json.Unmarshal(b, answer); err != nil {
		c.t.Fatalf("GET %s at node %d: %v", path, n.number, err)
	}
}

// fetch makes a GET. Without an answer the status is 0.
func (c *nodes) fetch(url string) (status int, body []byte) {
	c.t.Helper()
	return c.do("GET", url, nil)
}

// ask makes a call of the interface at a node.
func (c *nodes) ask(n *node, method, path string, body any) (status int, answer []byte) {
	c.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.do(method, n.base+path, b)
}

func (c *nodes) do(method, url string, body []byte) (status int, answer []byte) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+c.key)
	res, err := c.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}
