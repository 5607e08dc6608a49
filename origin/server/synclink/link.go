// Package synclink carries what a replica's machine says over HTTP: its requests to the origin, and
// the origin's answers back, piece by piece.
//
//	Machine ──Ask──▶ Link ──▶ request, with what proves who asks ──▶ origin
//	   ▲               │  one goroutine a request; each piece waits until the machine has taken
//	   └─Step(Answer)──┘  the one before it, so nothing piles up here
//
// All calls of the machine are made by the goroutine of Run, whether the machine is in this process
// or in a guest's. The link repeats nothing, follows no redirection, and keeps nothing.
package synclink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/compress"
	"github.com/sightline-dev/sightline/sync/replica"
)

// ErrAddress is returned for an invalid address of an origin.
var ErrAddress = errors.New("not the URL of an origin")

// ErrPurged is returned by Run if the origin reports that the replica may no longer have the application.
var ErrPurged = errors.New("this replica no longer has access to the application")

// Stepper is the machine: a *[replica.Machine], or a guest that has one.
type Stepper interface {
	Step(now time.Time, e replica.Event) ([]replica.Effect, error)
}

var _ Stepper = (*replica.Machine)(nil)

// Options are a link's settings.
type Options struct {
	Origin  string  // its address, such as "https://sightline.example.org"
	Machine Stepper // not for Join

	// Authorize returns the Authorization header of a request. path is below the origin's address.
	Authorize func(method, path, query string, body []byte) (string, error)

	// Local has a value when something was written here that the machine has to send. nil: nothing is.
	Local <-chan struct{}

	// Effect takes what concerns the host, from the goroutine of Run: BlobReady, Changed and Purge.
	Effect func(replica.Effect)

	// Place gets the complete pieces of snapshots that the machine permits to be stored without it, with their hash, and reports whether
	// it stored them. It runs at the same time as Step. nil: the machine gets all pieces.
	Place func(ctx context.Context, hash blob.Hash, piece []byte) (bool, error)

	Now func() time.Time
}

// Link is one machine's way to the origin. Tell may be called concurrently.
type Link struct {
	o      Options
	base   string
	near   bool // the origin is on this machine
	client *http.Client

	events chan replica.Event
	chunks chan chunk
	asked  map[uint64]context.CancelFunc // requests under way
	wake   *time.Timer
	purged *replica.Purge // what the origin said; nil: nothing
}

// chunk is something of an answer; taken is closed when the machine has it.
type chunk struct {
	answer    replica.Answer
	delivered chan struct{}
}

// shakeTime bounds the time in which a connection agrees on its keys.
const shakeTime = 10 * time.Second

// New makes a link. Errors: ErrAddress.
func New(o Options) (*Link, error) {
	base, err := Address(o.Origin)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	l := &Link{
		o: o, base: base, near: err == nil && system.IsLoopback(u.Hostname()), client: newClient(),
		events: make(chan replica.Event, 64), chunks: make(chan chunk), asked: map[uint64]context.CancelFunc{},
	}
	return l, nil
}

// Address checks an origin's address and returns it without a slash at its end. Requests must not be readable on the way, so it begins
// with https unless the origin is on this machine. The error is ErrAddress.
func Address(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https", u.RawQuery != "", u.Fragment != "", u.User != nil:
		return "", fmt.Errorf("%q: %w", s, ErrAddress)
	case u.Scheme == "http" && !system.IsLoopback(u.Hostname()):
		return "", fmt.Errorf("%q must start with https://, since plain HTTP would expose pictures and keys: %w", s, ErrAddress)
	}
	return strings.TrimRight(s, "/"), nil
}

func newClient() *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: system.Connect,
		TLSHandshakeTimeout: shakeTime, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Send hands the machine an event: BlobWanted, Online or Offline. It waits while many wait already,
// and returns false when ctx ends first.
func (l *Link) Send(ctx context.Context, e replica.Event) bool {
	select {
	case l.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// Run begins the machine and carries until ctx ends, which stops the machine in order and is no
// error; or until its store fails; or until the origin takes the application away: ErrPurged. It returns
// when all that it started has ended.
func (l *Link) Run(ctx context.Context) (err error) {
	var requests sync.WaitGroup
	l.wake = system.NewTimer(time.Hour)
	defer l.wake.Stop()
	defer func() {
		for _, cancel := range l.asked {
			cancel()
		}
		requests.Wait()
		l.client.CloseIdleConnections()
	}()
	err = l.step(ctx, &requests, replica.Begin{})
	for err == nil && l.purged == nil {
		select {
		case <-ctx.Done():
			return l.step(ctx, &requests, replica.Stop{})
		case e := <-l.events:
			err = l.step(ctx, &requests, e)
		case <-l.o.Local:
			err = l.step(ctx, &requests, replica.Local{})
		case <-l.wake.C:
			err = l.step(ctx, &requests, replica.Wake{})
		case p := <-l.chunks:
			if !p.answer.More {
				delete(l.asked, p.answer.ID)
			}
			err = l.step(ctx, &requests, p.answer)
			close(p.delivered)
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: %s", ErrPurged, l.purged.Reason)
	}
	return err
}

// step hands the machine an event and does what it wants.
func (l *Link) step(ctx context.Context, requests *sync.WaitGroup, e replica.Event) error {
	effects, err := l.o.Machine.Step(l.o.Now(), e)
	if err != nil {
		return err
	}
	for _, x := range effects {
		switch x := x.(type) {
		case replica.Ask:
			// The machine's Stop cancels running requests when ctx ends.
			asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
			l.asked[x.ID] = cancel
			requests.Go(func() {
				defer cancel()
				l.ask(asking, &x)
			})
		case replica.Cancel:
			if cancel, ok := l.asked[x.ID]; ok {
				delete(l.asked, x.ID)
				cancel()
			}
		case replica.WakeAt:
			l.wake.Reset(max(x.At.Sub(l.o.Now()), 0))
		case replica.Purge:
			l.purged = &x
			l.o.Effect(x)
		default:
			l.o.Effect(x)
		}
	}
	return nil
}

// pieceBytes is the number of bytes of an answer that are read at once.
const pieceBytes = 64 << 10

// sumOf returns a hash for the body of an answer whose hash the machine checks; nil for others.
func sumOf(a *replica.Ask) hash.Hash {
	if strings.HasPrefix(a.Path, "/v2/sync/snapshot/") {
		return sha256.New()
	}
	return nil
}

// ask makes one request and hands on its answer.
func (l *Link) ask(ctx context.Context, a *replica.Ask) {
	res, err := l.send(ctx, a)
	if err != nil {
		l.hand(ctx, replica.Answer{ID: a.ID, Err: err})
		return
	}
	defer res.Body.Close()
	x := replica.Answer{ID: a.ID, Status: res.StatusCode, Header: fields(res.Header), More: true}
	if a.Place && l.o.Place != nil && x.Status == http.StatusOK {
		l.hand(ctx, l.place(ctx, a, x, res))
		return
	}
	sum := sumOf(a)
	buf := make([]byte, pieceBytes)
	for {
		n, err := res.Body.Read(buf)
		x.Body = buf[:n]
		if sum != nil {
			sum.Write(x.Body)
		}
		if err != nil {
			x.More = false
			if sum != nil {
				sum.Sum(x.Sum[:0])
			}
			if !errors.Is(err, io.EOF) {
				x.Err = err
			}
		}
		if (n > 0 || !x.More || x.Status != 0) && !l.hand(ctx, x) || !x.More {
			return
		}
		x.Status, x.Header = 0, nil
	}
}

// place returns the whole answer x to a request for a piece of a snapshot, after it has offered the piece to Place.
func (l *Link) place(ctx context.Context, a *replica.Ask, x replica.Answer, res *http.Response) replica.Answer {
	x.More = false
	room := bytes.NewBuffer(make([]byte, 0, min(max(res.ContentLength, pieceBytes), replica.MaxPiece)+bytes.MinRead))
	if _, x.Err = room.ReadFrom(io.LimitReader(res.Body, replica.MaxPiece+1)); x.Err != nil {
		return x
	}
	x.Body, x.Sum = room.Bytes(), sha256.Sum256(room.Bytes())
	if asked, _ := blob.ParseHash(path.Base(a.Path)); asked != x.Sum {
		return x // the machine reports the fault
	}
	if placed, err := l.o.Place(ctx, x.Sum, x.Body); placed && err == nil {
		x.Placed, x.Body = true, nil
	}
	return x // what fails there fails with the machine, which knows what to do
}

// hand waits until the machine has taken a piece; false: nobody wants it any more.
func (l *Link) hand(ctx context.Context, x replica.Answer) bool {
	p := chunk{answer: x, delivered: make(chan struct{})}
	select {
	case l.chunks <- p:
	case <-ctx.Done():
		return false
	}
	<-p.delivered
	return true
}

// send sends a request.
func (l *Link) send(ctx context.Context, a *replica.Ask) (*http.Response, error) {
	where := l.base + a.Path
	if a.Query != "" {
		where += "?" + a.Query
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, where, bytes.NewReader(a.Body))
	if err != nil {
		return nil, err
	}
	for _, f := range a.Header {
		req.Header.Set(f.Name, f.Value)
	}
	if l.o.Authorize != nil {
		proof, err := l.o.Authorize(a.Method, a.Path, a.Query, a.Body)
		if err != nil {
			return nil, fmt.Errorf("credential: %w", err)
		}
		req.Header.Set("Authorization", proof)
	}
	req.Header.Set("Accept-Encoding", compress.Encoding)
	if strings.HasPrefix(a.Path, "/v2/sync/blobs/") && a.Method == "GET" {
		req.Header.Set("Accept-Encoding", "identity") // pictures are small as they are, and come in parts
	}
	if l.near && strings.HasPrefix(a.Path, "/v2/sync/snapshot/") {
		req.Header.Set("Accept-Encoding", "identity") // most of it is vectors, which pressing makes little smaller
	}
	res, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	return decompress(res)
}

// decompress returns an answer with its body as it was before it was compressed.
func decompress(res *http.Response) (*http.Response, error) {
	if !strings.EqualFold(res.Header.Get("Content-Encoding"), compress.Encoding) {
		return res, nil
	}
	r, err := compress.NewReader(res.Body)
	if err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	res.Body = unpacking{r, res.Body}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	return res, nil
}

// unpacking is a body that is unpacked as it comes.
type unpacking struct {
	io.ReadCloser
	below io.Closer
}

func (u unpacking) Close() error { return errors.Join(u.ReadCloser.Close(), u.below.Close()) }

// fields are an answer's headers in the order of their names.
func fields(h http.Header) []api.Field {
	var out []api.Field
	for name, values := range h {
		for _, v := range values {
			out = append(out, api.Field{Name: name, Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b api.Field) int { return strings.Compare(a.Name, b.Name) })
	return out
}
