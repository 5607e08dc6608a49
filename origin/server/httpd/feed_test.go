package httpd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/compress"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// The sync protocol over this server, in virtual time.

// feedServer is an origin whose log a test writes to and others read.
type feedServer struct {
	*apitest.World
	t       *testing.T
	s       *Server
	l       *pipeListener
	written int
}

// pullable serves a feed in a bubble.
func pullable(t *testing.T, limits feed.Limits, test func(t *testing.T, p *feedServer)) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
		f, err := feed.New(feed.Options{
			Engine: w.Engine, Register: w.Engine.Register, Blobs: w.Blobs, Pinner: w.Hosted, Limits: limits,
			Clock: func() time.Time { return apitest.Start.Add(time.Since(began)) },
			Wait: func(ctx context.Context, moved <-chan struct{}, d time.Duration) {
				timer := time.NewTimer(d)
				defer timer.Stop()
				select {
				case <-ctx.Done():
				case <-moved:
				case <-timer.C:
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		o := options(f)
		o.Mounts = []Mount{{Prefix: feed.Prefix, Handler: f, Caller: f.Caller, Live: true, CallTimeout: 3 * time.Hour}}
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		test(t, &feedServer{World: w, t: t, s: s, l: l})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		settle()
	})
}

// write appends entries to the log, of so many bytes each.
func (p *feedServer) write(n, size int) {
	p.t.Helper()
	part, err := p.Engine.Partition(p.App)
	if err != nil {
		p.t.Fatal(err)
	}
	for range n {
		p.written++
		body := &log.ConceptCreate{ID: fmt.Sprint("c", p.written), Name: strings.Repeat("n", size), Language: "en"}
		if _, err := part.Submit(context.Background(), "", []log.Body{body}, nil); err != nil {
			p.t.Fatal(err)
		}
	}
}

// appRecordSeq returns the place of the register as it is now.
func (p *feedServer) appRecordSeq() uint64 {
	p.t.Helper()
	_, seq, err := p.Engine.Register.AppRecord(p.App, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return seq
}

// protocol is the header that names the version of the protocol.
const protocol = "Sync-Protocol: 2"

// place returns the query of a reader that has the log up to an entry.
func (p *feedServer) place(l *log.Store, seq uint64) string {
	p.t.Helper()
	chain, err := l.Chain(seq)
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf("epoch=%x&since=%d&chain=%x&register=%d", l.EpochOf(seq).Epoch, seq, chain, p.appRecordSeq())
}

// listener is one answer to changes as it comes.
type listener struct {
	t    *testing.T
	conn net.Conn
	body io.Reader
	in   wire.Reader
	read int // bytes, with those of HTTP
}

// listen asks for changes.
func (p *feedServer) listen(query string, header ...string) *listener {
	p.t.Helper()
	c := p.l.dial("192.0.2.1")
	x := &listener{t: p.t, conn: c}
	if len(header) == 0 {
		header = []string{"Authorization: Key " + p.Key}
	}
	header = append(header, protocol)
	fmt.Fprintf(c, "GET /v2/sync/changes?app=%s&%s HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", p.App, query, strings.Join(header, "\r\n"))
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, x)), nil)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-store" {
		p.t.Fatalf("%+v, %v", res, err)
	}
	x.body, x.read = res.Body, 0
	return x
}

func (x *listener) Write(p []byte) (int, error) {
	x.read += len(p)
	return len(p), nil
}

// next is the next frame.
func (x *listener) next() wire.Frame {
	x.t.Helper()
	for {
		f, ok, err := x.in.Next()
		if err != nil {
			x.t.Fatal(err)
		}
		if ok {
			return f
		}
		b := make([]byte, 64<<10)
		n, err := x.body.Read(b)
		_, _ = x.in.Write(b[:n])
		if n == 0 && err != nil {
			x.t.Fatalf("no frame: %v", err)
		}
	}
}

// expect reads frames of these types.
func (x *listener) expect(types ...wire.Type) (last wire.Frame) {
	x.t.Helper()
	for _, want := range types {
		if last = x.next(); last.Type != want {
			x.t.Fatalf("%v, want %v of %v", last.Type, want, types)
		}
	}
	return last
}

// ends reads the end.
func (x *listener) ends(want wire.EndReason) {
	x.t.Helper()
	end, err := wire.DecodeEnd(x.expect(wire.TypeEnd).Body)
	if err != nil || end.Why != want {
		x.t.Errorf("the end is %+v, %v, want %d", end, err, want)
	}
	if n, err := x.body.Read(make([]byte, 1)); n != 0 || err == nil {
		x.t.Error("more comes after the end")
	}
	_ = x.conn.Close()
}

func TestPoll(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		began := time.Now()
		x := p.listen("since=0&live=poll")
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		x.ends(wire.WhyDone)
		if d := time.Since(began); d != 0 {
			t.Errorf("a poll with entries took %v", d)
		}
		part, err := p.Engine.Partition(p.App)
		if err != nil {
			t.Fatal(err)
		}
		x = p.listen(p.place(part.Log(), part.Log().Head()) + "&live=poll")
		go func() {
			time.Sleep(7 * time.Second)
			p.write(1, 1)
		}()
		x.expect(wire.TypeCheckpoint, wire.TypeEntries, wire.TypeCheckpoint)
		x.ends(wire.WhyDone)
		if d := time.Since(began); d != 7*time.Second {
			t.Errorf("an entry after 7 s came after %v", d)
		}
		x = p.listen(p.place(part.Log(), part.Log().Head()) + "&live=poll")
		x.expect(wire.TypeCheckpoint)
		x.expect(wire.TypeCheckpoint)
		x.ends(wire.WhyDone)
		if d := time.Since(began); d != 32*time.Second {
			t.Errorf("a poll of nothing ended after %v, want 25 s more", d)
		}
	})
}

// TestIdleStream listens to an idle origin: it sends a keepalive each 15 s, below a kilobyte a minute, and an entry at once.
func TestIdleStream(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		x := p.listen("since=0&live=stream")
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		began := time.Now()
		x.read = 0
		for i := range 40 {
			x.expect(wire.TypeKeepalive)
			if d := time.Since(began); d != time.Duration(i+1)*15*time.Second {
				t.Fatalf("keepalive %d after %v", i, d)
			}
		}
		if perMinute := x.read / 10; perMinute > 1024 {
			t.Errorf("an idle stream takes %d bytes a minute", perMinute)
		} else {
			t.Logf("an idle stream takes %d bytes a minute", perMinute)
		}
		go func() {
			time.Sleep(4 * time.Second)
			p.write(1, 1)
		}()
		x.expect(wire.TypeEntries, wire.TypeCheckpoint)
		if d := time.Since(began); d != 10*time.Minute+4*time.Second {
			t.Errorf("the entry came after %v", d)
		}
		drained := make(chan error)
		go func() { drained <- p.s.Drain(t.Context()) }()
		x.ends(wire.WhyShutdown)
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
	})
}

func TestStreamEndsInAnHour(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		began := time.Now()
		x := p.listen("since=0&live=stream")
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		for time.Since(began) < time.Hour-15*time.Second {
			x.expect(wire.TypeKeepalive)
		}
		if f := x.next(); f.Type == wire.TypeKeepalive {
			x.expect(wire.TypeCheckpoint)
		}
		x.ends(wire.WhyDone)
		if d := time.Since(began); d != time.Hour {
			t.Errorf("it ended after %v", d)
		}
	})
}

// TestStreamEndsWithToken ends with its token, and says before when that is.
func TestStreamEndsWithToken(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		client, err := p.Engine.Register.Client(p.App)
		if err != nil {
			t.Fatal(err)
		}
		token, life, err := p.Tokens.Issue(auth.Claims{App: p.App, Client: client.ID, Generation: client.Generation})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		x := p.listen("since=0&live=stream", "Authorization: Bearer "+token)
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		last := uint64(life.Seconds())
		for time.Since(began) < life-15*time.Second {
			m, err := wire.DecodeKeepalive(x.expect(wire.TypeKeepalive).Body)
			if err != nil || m.ExpiresIn != last-15 {
				t.Fatalf("the token is said to end in %d s after %d, %v", m.ExpiresIn, last, err)
			}
			last = m.ExpiresIn
		}
		if f := x.next(); f.Type == wire.TypeKeepalive {
			f = x.next()
			if end, err := wire.DecodeEnd(f.Body); f.Type != wire.TypeEnd || err != nil || end.Why != wire.WhyExpired {
				t.Errorf("%v %+v, %v", f.Type, end, err)
			}
		}
		_ = x.conn.Close()
		if d := time.Since(began); d != life {
			t.Errorf("the stream of a token of %v ended after %v", life, d)
		}
	})
}

// TestStreamEndsWithKey and of a deleted application end at once.
func TestStreamEndsWithKey(t *testing.T) {
	for name, tt := range map[string]struct {
		do    func(p *feedServer) error
		first []wire.Type
		why   wire.EndReason
	}{
		"key": {func(p *feedServer) error {
			return p.Engine.Register.DeleteKey(p.t.Context(), register.Caller{}, p.App, auth.HashKey(p.Key))
		}, nil, wire.WhyExpired},
		"application": {func(p *feedServer) error { return p.Engine.Register.DeleteApp(p.t.Context(), register.Caller{}, p.App) }, []wire.Type{wire.TypeAppRecord}, wire.WhyGone},
	} {
		t.Run(name, func(t *testing.T) {
			pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
				x := p.listen("since=0&live=stream")
				x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
				began := time.Now()
				go func() {
					time.Sleep(time.Second)
					if err := tt.do(p); err != nil {
						t.Error(err)
					}
				}()
				x.expect(tt.first...)
				x.ends(tt.why)
				if d := time.Since(began); d != time.Second {
					t.Errorf("the stream ended after %v", d)
				}
			})
		})
	}
}

// TestSlowReaderIsDisconnected takes nothing of a long log: after ten seconds it is cut off, with at most one frame made for it, and comes
// back with its cursor.
func TestSlowReaderIsDisconnected(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		p.write(3000, 600)
		part, err := p.Engine.Partition(p.App)
		if err != nil {
			t.Fatal(err)
		}
		l := part.Log()
		x := p.listen("since=0&live=stream")
		x.expect(wire.TypeAppRecord)
		run, err := wire.DecodeEntriesFrame(x.expect(wire.TypeEntries).Body)
		if err != nil || run.To >= l.Head() {
			t.Fatalf("one run to %d of %d, %v", run.To, l.Head(), err)
		}
		time.Sleep(11 * time.Second) // virtual, and it takes nothing
		rest, err := io.ReadAll(x.body)
		if err == nil {
			t.Error("a reader that takes nothing for eleven seconds is not cut off")
		}
		if len(rest) > wire.MaxBody+wire.HeaderSize {
			t.Errorf("%d bytes were waiting for it", len(rest))
		}
		_ = x.conn.Close()
		at := run.To
		for x := p.listen(p.place(l, at) + "&live=0"); at < l.Head(); {
			next, err := wire.DecodeEntriesFrame(x.expect(wire.TypeEntries).Body)
			if err != nil || next.From != at {
				t.Fatalf("after %d it goes on from %d, %v", at, next.From, err)
			}
			if at = next.To; at == l.Head() {
				x.expect(wire.TypeCheckpoint)
				x.ends(wire.WhyDone)
			}
		}
	})
}

// TestSlowSteadyReaderGetsAll takes a frame in eight seconds each, and gets all of them.
func TestSlowSteadyReaderGetsAll(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		p.write(2000, 600)
		x := p.listen("since=0&live=0")
		reader := x.body
		x.body = readFunc(func(b []byte) (int, error) {
			time.Sleep(time.Second)
			return reader.Read(b)
		})
		x.expect(wire.TypeAppRecord)
		f := x.next()
		runs := 0
		for ; f.Type == wire.TypeEntries; f = x.next() {
			runs++
		}
		if f.Type != wire.TypeCheckpoint || runs < 4 {
			t.Errorf("%d runs, then %v", runs, f.Type)
		}
		x.ends(wire.WhyDone)
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// TestTooManyReaders has more streams than there may be.
func TestTooManyReaders(t *testing.T) {
	pullable(t, feed.Limits{Streams: 2}, func(t *testing.T, p *feedServer) {
		var open []*listener
		for range 2 {
			x := p.listen("since=0&live=stream")
			x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
			open = append(open, x)
		}
		c := p.l.dial("192.0.2.1")
		ask := "GET /v2/sync/changes?app=" + p.App + "&live=poll HTTP/1.1\r\nHost: h\r\nAuthorization: Key " + p.Key + "\r\n" + protocol + "\r\n\r\n"
		fmt.Fprint(c, ask)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") != "5" {
			t.Fatalf("%+v, %v", res, err)
		}
		_ = c.Close()
		_ = open[0].conn.Close()
		time.Sleep(16 * time.Second) // the next keepalive finds out
		synctest.Wait()
		x := p.listen("since=0&live=stream")
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		_ = x.conn.Close()
		_ = open[1].conn.Close()
	})
}

// TestFeedSocket receives the same frames as messages of a WebSocket. The credential and the version are among the protocols that it offers.
func TestFeedSocket(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		c := p.l.dial("192.0.2.1")
		d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return c, nil }}
		k, _, err := d.Dial("ws://h/v2/sync/changes?app="+p.App+"&since=0&live=stream", http.Header{
			"Sec-WebSocket-Protocol": {"sightline.sync, sync-protocol.2, " + credentialOf("Key "+p.Key)}, "Accept-Encoding": {"zstd"},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var in wire.Reader
		var got []wire.Type
		for len(got) < 5 {
			_, message, err := k.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = in.Write(message)
			f, ok, err := in.Next()
			if !ok || err != nil || !in.Idle() {
				t.Fatalf("a message is no frame: %v", err)
			}
			got = append(got, f.Type)
		}
		want := []wire.Type{wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint, wire.TypeKeepalive, wire.TypeKeepalive}
		if !slices.Equal(got, want) || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %v", got, time.Since(began))
		}
		_ = k.Close()
	})
}

// TestCompressedStream comes compressed, and nothing of it is held back.
func TestCompressedStream(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		p.write(300, 100)
		x := p.listen("since=0&live=stream", "Authorization: Key "+p.Key, "Accept-Encoding: gzip, zstd")
		packed, err := compress.NewReader(x.body)
		if err != nil {
			t.Fatal(err)
		}
		x.body = packed
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		if x.read > 10_000 {
			t.Errorf("300 concepts of 100 equal letters take %d bytes", x.read)
		}
		began := time.Now()
		x.expect(wire.TypeKeepalive)
		p.write(1, 1)
		x.expect(wire.TypeEntries, wire.TypeCheckpoint)
		if d := time.Since(began); d != 15*time.Second {
			t.Errorf("held back for %v", d)
		}
		_ = x.conn.Close()
		if err := packed.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestBlobOverHTTP sends a picture of two megabytes in pieces, and reads all and parts of it, with its length in the header.
func TestBlobOverHTTP(t *testing.T) {
	pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
		data := bytes.Repeat([]byte("0123456789abcdef"), 128<<10)
		path := "/v2/sync/blobs/" + blob.Sum(data).String() + "?app=" + p.App
		c := p.l.dial("192.0.2.1")
		answers := bufio.NewReader(c)
		ask := func(method, header string, body []byte) (*http.Response, []byte) {
			t.Helper()
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: h\r\nAuthorization: Key %s\r\nContent-Length: %d\r\n%s\r\n", method, path, p.Key, len(body), header)
			if len(body) > 0 {
				_, _ = c.Write(body)
			}
			res, err := http.ReadResponse(answers, &http.Request{Method: method})
			if err != nil {
				t.Fatalf("%s %s: %v", method, header, err)
			}
			got, err := io.ReadAll(res.Body)
			if err != nil {
				t.Errorf("%s %s: %d bytes of %d: %v", method, header, len(got), res.ContentLength, err)
			}
			return res, got
		}
		const piece = 1 << 20
		for at := 0; at < len(data); at += piece {
			want := map[bool]int{true: 201, false: 202}[at+piece == len(data)]
			if res, got := ask("PUT", fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", at, at+piece-1, len(data)), data[at:at+piece]); res.StatusCode != want {
				t.Fatalf("PUT = %d %q, want %d", res.StatusCode, got, want)
			}
		}
		if res, got := ask("GET", "", nil); res.StatusCode != 200 || res.ContentLength != int64(len(data)) || !bytes.Equal(got, data) ||
			res.Header.Get("Cache-Control") != "private, max-age=31536000, immutable" {
			t.Errorf("GET = %d, %d bytes, %v", res.StatusCode, len(got), res.Header)
		}
		if res, _ := ask("HEAD", "", nil); res.StatusCode != 200 || res.ContentLength != int64(len(data)) {
			t.Errorf("HEAD = %d of %d bytes", res.StatusCode, res.ContentLength)
		}
		if res, got := ask("GET", "Range: bytes=1500000-\r\n", nil); res.StatusCode != 206 || !bytes.Equal(got, data[1500000:]) ||
			res.Header.Get("Content-Range") != fmt.Sprintf("bytes 1500000-%d/%d", len(data)-1, len(data)) {
			t.Errorf("the rest = %d, %d bytes", res.StatusCode, len(got))
		}
		_ = c.Close()
	})
}
