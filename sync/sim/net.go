package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// errNetwork is the error that a host reports for every fault of the network.
var errNetwork = errors.New("connection lost")

// faults are the probabilities of the faults of one run, in percent.
type faults struct {
	lost     int // requests that never arrive
	cut      int // answers that end early
	twice    int // requests that arrive again later
	slow     int // messages that take seconds
	unsynced int // unsynced data that survives a loss of power; see [Disk]
}

// delay returns the transfer time of a message.
func (w *world) delay() time.Duration {
	if w.chance(w.faults.slow) {
		return w.some(8 * time.Second)
	}
	return time.Millisecond + w.some(80*time.Millisecond)
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// some returns a random duration below limit.
func (w *world) some(limit time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(limit)))
}

// response is an answer of the origin. Its body includes the output of a stream.
type response struct {
	status int
	header []api.Field
	body   []byte
	stream bool // whether body is a stream of frames
}

// send sends a request to the origin and passes the answer to the machine. The network may lose either, delay it or repeat the request.
func (r *party) send(a replica.Ask) {
	w, life := r.world, r.life
	r.requests[a.ID] = true
	w.stats.Requests++
	answer := func(after time.Duration, x replica.Answer) {
		w.after(after, func() {
			if r.life != life || !r.requests[a.ID] {
				return
			}
			if !x.More {
				delete(r.requests, a.ID)
			}
			r.step(x)
		})
	}
	lost := func() { answer(w.delay(), replica.Answer{ID: a.ID, Err: errNetwork}) }
	if r.down || w.chance(w.faults.lost) {
		lost()
		return
	}
	w.age(r, &a)
	request := r.request(&a)
	arrive := w.delay()
	if w.chance(w.faults.twice) {
		w.stats.Duplicates++
		w.after(arrive+w.delay(), func() { w.origin.serve(request, func(response, error) {}) })
	}
	w.after(arrive, func() {
		if r.down {
			lost()
			return
		}
		w.origin.serve(request, func(resp response, err error) {
			if err != nil || r.down {
				lost()
				return
			}
			r.carry(a.ID, resp, answer)
		})
	})
}

// request returns an Ask as the origin receives it, with the replica's credential.
func (r *party) request(a *replica.Ask) *api.Request {
	return &api.Request{
		Method: a.Method, Path: a.Path, Query: a.Query, Body: bytes.Clone(a.Body), Remote: fmt.Sprint(r.number),
		Authorization: r.credential(a),
		Header: func(name string) string {
			for _, f := range a.Header {
				if strings.EqualFold(f.Name, name) {
					return f.Value
				}
			}
			return ""
		},
	}
}

// age changes some session requests of new replicas to those of a newer version, with a field and a feature that the origin does not know.
// The replica signs the request afterwards.
func (w *world) age(r *party, a *replica.Ask) {
	if !strings.HasSuffix(a.Path, "/session") || r.old || w.rng.IntN(4) > 0 {
		return
	}
	m, err := wire.DecodeSession(a.Body)
	if err != nil {
		w.fail(fmt.Errorf("session: %w", err))
		return
	}
	m.Extra = protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	m.Features = append(m.Features, "tomorrow")
	a.Body = m.Encode()
}

// novel is a frame of an optional type that no replica knows. Replicas skip it.
var novel = wire.AppendFrame(nil, wire.Optional+1, []byte("tomorrow"))

// carry delivers an answer to the replica in one or more pieces. Sometimes the answer ends early with errNetwork.
func (r *party) carry(id uint64, resp response, answer func(time.Duration, replica.Answer)) {
	w := r.world
	body, after := resp.body, w.delay()
	short := w.chance(w.faults.cut)
	if short {
		body = body[:w.rng.IntN(len(body)+1)]
	}
	if resp.stream && w.rng.IntN(4) == 0 {
		body = slices.Concat(novel, body)
	}
	piece := replica.Answer{ID: id, Status: resp.status, Header: resp.header}
	for len(body) > 1 && w.rng.IntN(3) == 0 {
		n := 1 + w.rng.IntN(len(body)-1)
		piece.Body, piece.More = body[:n], true
		answer(after, piece)
		body = body[n:]
		piece = replica.Answer{ID: id}
		after += w.delay()
	}
	piece.Body = body
	if short {
		piece.Err = errNetwork
	}
	answer(after, piece)
}

// waitingPoll is a poll that the origin has not answered yet.
type waitingPoll struct {
	request *api.Request
	reply   func(response, error) // nil once the poll was answered
}

// pollWait is the maximum time until the origin answers a poll.
const pollWait = 25 * time.Second

// serve answers a request. A poll waits until the log has a new entry, for at most pollWait.
func (g *origin) serve(r *api.Request, reply func(response, error)) {
	if !g.up {
		reply(response{}, errNetwork)
		return
	}
	if !g.idle(r) {
		g.answer(r, reply)
		return
	}
	h := &waitingPoll{r, reply}
	g.polls = append(g.polls, h)
	g.world.after(pollWait, func() {
		if h.reply != nil {
			g.release(h)
		}
	})
}

// idle reports whether a request is a poll and the log has no new entries for it. During the healing no poll waits.
func (g *origin) idle(r *api.Request) bool {
	if !strings.HasSuffix(r.Path, "/changes") || g.world.healing {
		return false
	}
	q, err := url.ParseQuery(r.Query)
	if err != nil || q.Get("live") != replica.Poll.String() {
		return false
	}
	l := g.part.Log()
	since, err := strconv.ParseUint(q.Get("since"), 10, 64)
	return err == nil && since == l.Head() && q.Get("opening") == fmt.Sprintf("%x", g.part.Opening())
}

// release answers a waiting poll, unless it was answered already.
func (g *origin) release(h *waitingPoll) {
	reply := h.reply
	if h.reply = nil; reply == nil {
		return
	}
	if !g.up {
		reply(response{}, errNetwork)
		return
	}
	g.answer(h.request, reply)
}

// answerPolls answers all waiting polls within three seconds.
func (g *origin) answerPolls() {
	waiting := g.polls
	g.polls = nil
	g.world.after(g.world.some(3*time.Second), func() {
		for _, h := range waiting {
			g.release(h)
		}
	})
}

// answer passes a request to the feed, checks the answer and sends it to reply. If power fails meanwhile, reply gets errNetwork. If the log
// has new entries afterwards, answer also answers the waiting polls.
func (g *origin) answer(r *api.Request, reply func(response, error)) {
	var resp response
	before, local := g.world.oracle.head(), g.isLocal()
	complete := g.runWithCuts(func() error {
		x := g.feed.Serve(context.Background(), r)
		resp = response{status: x.Status, header: x.Header, body: x.Body}
		if x.ContentType != "" {
			resp.header = append(resp.header, api.Field{Name: "Content-Type", Value: x.ContentType})
		}
		if strings.HasSuffix(r.Path, "/back") {
			return g.lists()
		}
		if x.Stream == nil {
			return nil
		}
		var b bytes.Buffer
		err := x.Stream(&b)
		resp.body, resp.stream = b.Bytes(), true
		return err
	})
	if complete && local {
		g.world.fail(g.checkLocal(r, &resp))
	}
	if complete && strings.HasSuffix(r.Path, "/snapshot") && resp.status == 200 {
		g.world.fail(g.leadsOn(resp.body))
	}
	g.checkFullDisk(before)
	if !complete {
		reply(response{}, errNetwork)
		return
	}
	reply(resp, nil)
	if g.world.oracle.head() > before {
		g.answerPolls()
	}
}

// has reports whether the log has a place. It does not have the place of entries that were lost and came back.
func (g *origin) has(c partition.Cursor) bool {
	if !g.up {
		return false
	}
	has, err := g.part.HasPlace(log.Mark{Epoch: c.Epoch, To: c.Seq}, c.Chain)
	g.world.fail(err)
	return has
}

// leadsOn checks I7 for a snapshot that the origin offers: the log has all entries after it.
func (g *origin) leadsOn(manifest []byte) error {
	m, err := wire.DecodeManifest(manifest)
	has, failed := g.part.HasPlace(log.Mark{Epoch: m.Epoch, To: m.Seq}, m.Chain)
	if l := g.part.Log(); err == nil && failed == nil && (!has || m.Seq+1 < l.Floor()) {
		err = fmt.Errorf("I7: the origin offers a snapshot of entry %d, and its log begins at entry %d", m.Seq, l.Floor())
	}
	return err
}
