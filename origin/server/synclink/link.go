// Package synclink sends the requests of a replica's machine to the origin over HTTP, and passes the origin's answers to the machine, piece
// by piece.
//
//	Machine ──Ask──▶ Link ──▶ request, with credentials ──▶ origin
//	   ▲               │  one goroutine per request; it reads the next piece of an answer after
//	   └─Step(Answer)──┘  the machine has processed the previous one, so no pieces queue here
//
// Only the goroutine of Run calls the machine, which runs in this process or in a guest. The link repeats no request, follows no
// redirection and stores nothing.
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
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/replica"
)

// ErrAddress is returned for an invalid address of an origin.
var ErrAddress = errors.New("not the URL of an origin")

// ErrPurged is returned by Run if the origin reports that the replica may no longer store the application.
var ErrPurged = errors.New("this replica no longer has access to the application")

// Stepper is the machine: a *[replica.Machine], or a guest that runs one.
type Stepper interface {
	Step(now time.Time, e replica.Event) ([]replica.Effect, error)
}

var _ Stepper = (*replica.Machine)(nil)

// Options are a link's settings.
type Options struct {
	Origin  string  // the origin's URL, such as "https://sightline.example.org"
	Machine Stepper // unused by Join

	// Device names this replica in requests, see [feed]: "folder-" and 32 hexadecimal digits. Empty: an edge, whose credential names it.
	Device string

	// Authorize returns the headers with the credential of a request. path is relative to Origin. nil: requests have no credential.
	Authorize func(method, path, query string, body []byte) ([]api.Field, error)

	// Local receives a value after a local write that the machine must send. nil: there are no local writes.
	Local <-chan struct{}

	// Effect gets the effects that the host handles: BlobReady, StatusChange, InstallSnapshot and Purge. The goroutine of Run calls it.
	Effect func(replica.Effect)

	// Place gets each complete snapshot chunk that the host may store itself (Ask.Place), with its hash, and reports whether it stored
	// the chunk. It may run at the same time as Step. nil: the machine gets all chunks.
	Place func(ctx context.Context, hash blob.Hash, piece []byte) (bool, error)

	Now func() time.Time
}

// Link connects one machine with the origin. Send may be called concurrently.
type Link struct {
	o      Options
	base   string
	near   bool // whether the origin is on this computer
	client *http.Client

	events   chan replica.Event
	chunks   chan chunk
	requests map[uint64]context.CancelFunc // cancels the running requests, by id
	wake     *time.Timer
	purged   *replica.Purge // the machine's Purge; nil if there was none
}

// chunk is a piece of an answer. Run closes delivered after the machine has processed it.
type chunk struct {
	answer    replica.Answer
	delivered chan struct{}
}

// shakeTime is the maximum duration of a TLS handshake.
const shakeTime = 10 * time.Second

// New returns a link. It does not connect. The error is ErrAddress.
func New(o Options) (*Link, error) {
	base, err := ParseAddress(o.Origin)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	l := &Link{
		o: o, base: base, near: err == nil && system.IsLoopback(u.Hostname()), client: newClient(),
		events: make(chan replica.Event, 64), chunks: make(chan chunk), requests: map[uint64]context.CancelFunc{},
	}
	return l, nil
}

// ParseAddress checks an origin's URL and returns it without a slash at its end. The URL must begin with https:// unless the origin is on
// this computer, because others could read plain HTTP. The error is ErrAddress.
func ParseAddress(s string) (string, error) {
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

// Send queues an event for the machine: BlobWanted, Online or Offline. It waits while the queue of 64 events is full, and returns false if
// ctx ends first.
func (l *Link) Send(ctx context.Context, e replica.Event) bool {
	select {
	case l.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// Run starts the machine and passes requests and answers until ctx ends. Then it stops the machine in order, which is no error.
// It returns earlier if the machine fails, or with ErrPurged if the machine ends with a Purge. All requests have ended when Run returns.
func (l *Link) Run(ctx context.Context) (err error) {
	var requests sync.WaitGroup
	l.wake = system.NewTimer(time.Hour)
	defer l.wake.Stop()
	defer func() {
		for _, cancel := range l.requests {
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
			err = l.step(ctx, &requests, replica.LocalWrite{})
		case <-l.wake.C:
			err = l.step(ctx, &requests, replica.Wake{})
		case p := <-l.chunks:
			if !p.answer.More {
				delete(l.requests, p.answer.ID)
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

// step passes an event to the machine and carries out the effects.
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
			l.requests[x.ID] = cancel
			requests.Go(func() {
				defer cancel()
				l.ask(asking, &x)
			})
		case replica.Cancel:
			if cancel, ok := l.requests[x.ID]; ok {
				delete(l.requests, x.ID)
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

// pieceBytes is the maximum number of bytes in a piece of an answer.
const pieceBytes = 64 << 10

// sumOf returns a new hash for the answer to a if the machine checks the answer's hash, and nil otherwise.
func sumOf(a *replica.Ask) hash.Hash {
	if strings.HasPrefix(a.Path, "/v2/sync/snapshot/") {
		return sha256.New()
	}
	return nil
}

// ask sends one request and passes the answer to the machine, in pieces.
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

// place reads the answer x to a request for a snapshot chunk, offers the chunk to Place, and returns the complete answer.
func (l *Link) place(ctx context.Context, a *replica.Ask, x replica.Answer, res *http.Response) replica.Answer {
	x.More = false
	room := bytes.NewBuffer(make([]byte, 0, min(max(res.ContentLength, pieceBytes), replica.MaxChunkBytes)+bytes.MinRead))
	if _, x.Err = room.ReadFrom(io.LimitReader(res.Body, replica.MaxChunkBytes+1)); x.Err != nil {
		return x
	}
	x.Body, x.Sum = room.Bytes(), sha256.Sum256(room.Bytes())
	if want, _ := blob.ParseHash(path.Base(a.Path)); want != x.Sum {
		return x // the machine reports the fault
	}
	if placed, err := l.o.Place(ctx, x.Sum, x.Body); placed && err == nil {
		x.Placed, x.Body = true, nil
	}
	return x // if Place failed, the machine stores the chunk, and handles a failure of that
}

// hand passes a piece to Run and waits until the machine has processed it. It returns false if ctx ends first: the request was canceled.
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

// send sends a request, and returns the response without its compression.
func (l *Link) send(ctx context.Context, a *replica.Ask) (*http.Response, error) {
	query := a.Query
	if l.o.Device != "" && (a.Path == feed.Prefix+"/session" || a.Path == feed.Prefix+"/changes") {
		query = strings.TrimPrefix(query+"&device="+l.o.Device, "&")
	}
	target := l.base + a.Path
	if query != "" {
		target += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, target, bytes.NewReader(a.Body))
	if err != nil {
		return nil, err
	}
	header := a.Header
	if l.o.Authorize != nil {
		credential, err := l.o.Authorize(a.Method, a.Path, query, a.Body)
		if err != nil {
			return nil, fmt.Errorf("credential: %w", err)
		}
		header = slices.Concat(header, credential)
	}
	for _, f := range header {
		req.Header.Set(f.Name, f.Value)
	}
	req.Header.Set("Accept-Encoding", compress.Encoding)
	if strings.HasPrefix(a.Path, "/v2/sync/blobs/") && a.Method == "GET" {
		req.Header.Set("Accept-Encoding", "identity") // pictures are compressed already, and the machine may ask for a range
	}
	if l.near && strings.HasPrefix(a.Path, "/v2/sync/snapshot/") {
		req.Header.Set("Accept-Encoding", "identity") // mostly vectors, which compression barely shrinks
	}
	res, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	return decompress(res)
}

// decompress returns res with a body that it decompresses while the caller reads. It returns an uncompressed res unchanged.
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

// unpacking is a body that decompresses while it is read. Close closes the compressed body, too.
type unpacking struct {
	io.ReadCloser
	below io.Closer
}

func (u unpacking) Close() error { return errors.Join(u.ReadCloser.Close(), u.below.Close()) }

// fields returns the headers of an answer, sorted by name.
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
