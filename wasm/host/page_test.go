package host

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/fasthttp/websocket"
	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
	"github.com/sightline-dev/sightline/wasm/simd"
	"github.com/sightline-dev/sightline/web/process"
)

// page runs the module in a browser, as web/runtime does, with the services of this process. Its worker asks for work, does it and
// returns the result. To call an import, it sends a turn and waits for the answer.
//
//	test ──toPage──▶ page ──turn──▶ test ──import──▶ page … ──turn {done}──▶ test
type page struct {
	toPage   chan messageToPage // messages to the page
	fromPage chan turn          // messages of the page
	closed   chan struct{}
	last     int // id of the newest guest
}

// messageToPage is a message to the page. Its bytes follow the JSON head.
type messageToPage struct {
	ID     int    `json:"id"`
	Make   bool   `json:"make,omitempty"`
	Call   string `json:"call,omitempty"`
	Drop   bool   `json:"drop,omitempty"`
	Answer string `json:"answer,omitempty"` // result of an import
	bytes  []byte
}

// turn is a message of the page. Its bytes follow the JSON head.
type turn struct {
	Ready, Done   bool
	Failed        string
	ID            int
	Import        string
	Args          []string
	Read, Written []span
	bytes         []byte
}

// span is a range of the guest's memory.
type span struct{ At, N uint32 }

// openPage starts a browser that runs the page.
func openPage(t *testing.T) *page {
	t.Helper()
	node := process.Need(t, "node")
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	root := testkit.Root(t)
	p := &page{toPage: make(chan messageToPage), fromPage: make(chan turn), closed: make(chan struct{})}
	process.Make(t, "web")
	web := filepath.Join(root, "web", "runtime")
	scripts := filepath.Join(web, "served", "dist")
	mux := http.NewServeMux()
	give := func(path, kind string, data []byte) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(data)
		})
	}
	worker, err := os.ReadFile(filepath.Join("testdata", "page", "worker.js"))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := os.ReadFile(filepath.Join("testdata", "page", "wire.js"))
	if err != nil {
		t.Fatal(err)
	}
	give("/guest.wasm", "application/wasm", prebuilt.Guest(t))
	give("/kernels.wasm", "application/wasm", simd.Module())
	give("/worker.js", "text/javascript", worker)
	give("/wire.js", "text/javascript", wire)
	give("/", "text/html", []byte("<!doctype html><title>Module</title>"))
	mux.Handle("/runtime/", http.StripPrefix("/runtime/", http.FileServer(http.Dir(scripts))))
	mux.HandleFunc("GET /turns", p.turns)
	srv := httptest.NewServer(isolatePage(mux))
	browser := exec.Command(node, filepath.Join(web, "test", "pages", "attach", "attach.js"), "/worker.js")
	browser.Env = append(os.Environ(), "ADDRESS="+srv.URL, "CHROMIUM="+chromium)
	browser.Stderr = os.Stderr
	stay, err := browser.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = browser.Wait()
		close(p.closed)
	}()
	t.Cleanup(func() {
		_ = stay.Close() // at the end of its input the browser ends
		<-ended
		srv.CloseClientConnections()
		srv.Close()
	})
	if first, err := p.hear(); err != nil || !first.Ready {
		t.Fatalf("the page does not start: %+v, %v", first, err)
	}
	return p
}

// isolatePage adds the headers with which a page can share memory between its workers.
func isolatePage(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		h.ServeHTTP(w, r)
	})
}

// turns receives the page's messages, and answers each with the next work.
func (p *page) turns(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer func() { _ = conn.Close() }()
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		var msg turn
		if msg.bytes, err = unframe(message, &msg); err != nil {
			msg = turn{Failed: err.Error()}
		}
		select {
		case p.fromPage <- msg:
		case <-p.closed:
			return
		}
		select {
		case next := <-p.toPage:
			err = conn.WriteMessage(websocket.BinaryMessage, frame(next, next.bytes))
		case <-p.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// frame returns a message: the length of the head in four bytes, the head as JSON, and data.
func frame(head any, data []byte) []byte {
	text, _ := json.Marshal(head)
	message := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return append(append(message, text...), data...)
}

// unframe reads the head of a message and returns its bytes.
func unframe(message []byte, head any) ([]byte, error) {
	if len(message) < 4 || int(binary.LittleEndian.Uint32(message)) > len(message)-4 {
		return nil, io.ErrUnexpectedEOF
	}
	text, data := message[4:4+binary.LittleEndian.Uint32(message)], message[4+binary.LittleEndian.Uint32(message):]
	return data, json.Unmarshal(text, head)
}

var errClosedPage = errors.New("the browser is gone")

func (p *page) hear() (turn, error) {
	select {
	case msg := <-p.fromPage:
		return msg, nil
	case <-p.closed:
		return turn{}, errClosedPage
	}
}

// do sends a message to the page and returns the bytes of its result. Meanwhile it runs the imports that the page calls.
func (p *page) do(ctx context.Context, in *Instance, next messageToPage) ([]byte, error) {
	for {
		select {
		case p.toPage <- next:
		case <-p.closed:
			return nil, errClosedPage
		}
		msg, err := p.hear()
		switch {
		case err != nil:
			return nil, err
		case msg.Failed != "":
			return nil, errors.New(msg.Failed)
		case msg.Done:
			return msg.bytes, nil
		}
		if next, err = callImport(ctx, in, &msg); err != nil {
			return nil, err
		}
	}
}

// callImport runs an import on the ranges of the guest's memory in msg, and returns its answer with the written ranges.
func callImport(ctx context.Context, in *Instance, msg *turn) (messageToPage, error) {
	for _, one := range imports {
		if one.name != msg.Import {
			continue
		}
		memory := &ranges{}
		rest := msg.bytes
		for _, s := range msg.Read {
			memory.spans = append(memory.spans, piece{s.At, rest[:s.N]})
			rest = rest[s.N:]
		}
		written := len(memory.spans)
		for _, s := range msg.Written {
			memory.spans = append(memory.spans, piece{s.At, make([]byte, s.N)})
		}
		c := call{ctx: ctx, in: in, memory: memory, stack: make([]uint64, max(len(msg.Args), 1))}
		for i, arg := range msg.Args {
			v, err := strconv.ParseUint(arg, 10, 64)
			if err != nil {
				return messageToPage{}, err
			}
			c.stack[i] = v
			if one.params[i] == wapi.ValueTypeI32 {
				c.stack[i] = uint64(uint32(v))
			}
		}
		one.hostFunc(&c)
		answer := messageToPage{ID: msg.ID, Answer: strconv.FormatInt(int64(c.stack[0]), 10)}
		for _, p := range memory.spans[written:] {
			answer.bytes = append(answer.bytes, p.data...)
		}
		return answer, nil
	}
	return messageToPage{}, fmt.Errorf("no import %q", msg.Import)
}

// ranges are the parts of a memory that an import may touch.
type ranges struct {
	wapi.Memory
	spans []piece
}

type piece struct {
	at   uint32
	data []byte
}

func (r *ranges) Size() uint32 { return 1<<32 - 1 }

func (r *ranges) Read(at, n uint32) ([]byte, bool) {
	if n == 0 {
		return nil, true
	}
	for _, p := range r.spans {
		if at >= p.at && uint64(at)+uint64(n) <= uint64(p.at)+uint64(len(p.data)) {
			return p.data[at-p.at:][:n:n], true
		}
	}
	return nil, false
}

// far implements api.Module for a guest in the page. Reserved memory and answers are in buffer, in this process.
type far struct {
	wapi.Module
	page   *page
	id     int
	in     *Instance
	buffer []byte
}

func (f *far) Memory() wapi.Memory         { return &ranges{spans: []piece{{0, f.buffer}}} }
func (f *far) Close(context.Context) error { return nil }

// farExport is an export of a far guest.
type farExport struct {
	wapi.Function
	far  *far
	name string
}

func (e farExport) CallWithStack(ctx context.Context, stack []uint64) error {
	if e.name == "reserve" {
		e.far.buffer = make([]byte, stack[0])
		stack[0] = 0
		return nil
	}
	answer, err := e.far.page.do(ctx, e.far.in, messageToPage{ID: e.far.id, Call: e.name, bytes: e.far.buffer[:stack[0]]})
	e.far.buffer, stack[0] = answer, uint64(len(answer))
	return err
}

// open does what Runtime.Open does, for a guest in the page.
func (p *page) open(rt *Runtime, services Services, s abi.Settings) (*Instance, error) {
	p.last++
	host, err := hostcalls.New(services, s.App)
	if err != nil {
		return nil, err
	}
	in := &Instance{rt: rt, host: host}
	in.kernels = rt.kernels.Open()
	rt.open.Add(1)
	f := &far{page: p, id: p.last, in: in}
	in.module, in.free, in.exports = f, func() {}, map[string]wapi.Function{}
	for name := range exports {
		in.exports[name] = farExport{far: f, name: name}
	}
	if s.Bundles, err = hostcalls.Names(services.Bundles); err != nil {
		return nil, err
	}
	s.Tokens = services.Tokens != nil
	ctx := context.Background()
	if _, err := p.do(ctx, in, messageToPage{ID: f.id, Make: true}); err != nil {
		return nil, err
	}
	answer, err := in.call(ctx, "open", s.Marshal())
	if err != nil {
		return nil, err
	}
	guestErr, err := abi.ParseDone(answer)
	return in, errors.Join(err, guestErr)
}

// farGuest is a guest in the page that the transcripts test.
type farGuest struct{ guestOf }

func (g farGuest) Close() error {
	f := g.Instance.module.(*far)
	_, err := f.page.do(context.Background(), f.in, messageToPage{ID: f.id, Drop: true})
	return errors.Join(err, g.Kill())
}

// TestTranscriptsInPage replays the transcripts of core/api on the module in a browser.
func TestTranscriptsInPage(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute in a browser")
	}
	p, rt := openPage(t), module(t)
	set, bundles := apitest.Tiny(t), apitest.TinyBundles(t)
	var analyser *Instance
	var once sync.Once
	open := func(t testing.TB, o core.Options, app string) apitest.Guest {
		t.Helper()
		var err error
		once.Do(func() {
			services := Services{Bundles: bundles, Clock: o.Clock, Rand: newSeeded()}
			analyser, err = p.open(rt, services, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
		})
		if err != nil {
			t.Fatal(err)
		}
		services := Services{Store: o.Store, Hosted: o.Hosted, Bundles: bundles, Tokens: o.Tokens, Clock: o.Clock, Rand: o.Rand}
		s := abi.Settings{
			Role: abi.Engine, App: app, Store: abi.StoreHost, PublicURL: o.PublicURL, PublicAppID: o.PublicAppID, KeepPredicted: o.PredictedTTL,
			MaxBytes: uint32(o.JSON.Bytes), MaxMembers: uint32(o.JSON.Members),
			Rate: uint32(max(o.Rate.PerSecond, 0)), Burst: uint32(o.Rate.Burst),
		}
		in, err := p.open(rt, services, s)
		if err != nil {
			t.Fatal(err)
		}
		return farGuest{guestOf{in, analyser}}
	}
	apitest.Run(t, apitest.Host{
		Files: apitest.WithoutAccounts(os.DirFS(filepath.Join(testkit.Root(t), "core", "api", "testdata"))),
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			w := apitest.NewGuestWorld(t, memkv.New(), set, nil, settings, open)
			return func(r api.Request) api.Response { return w.Serve(t, r) }
		},
	})
}
