package video

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/core/testkit"

	"github.com/sightline-dev/sightline/core/film"
)

// patience bounds how long a test waits for a condition.
const patience = time.Minute

// until waits until a condition is true.
func until(t testing.TB, condition string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("not after %v: %s", patience, condition)
		}
	}
}

// alive reports whether a process is alive.
func alive(id int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return false
	}
	_, alive := parentOf(string(stat))
	return alive
}

// idOf returns the process ID that the fake decoder writes into the first frame.
func idOf(t testing.TB, f Frame) int {
	t.Helper()
	id, err := strconv.Atoi(strings.TrimSpace(string(f.Planes.Pix)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestDecoderEndsWithCaller ends the caller's context or its loop while a decoder hangs, computes or has more output. Frames returns when
// the decoder has ended.
func TestDecoderEndsWithCaller(t *testing.T) {
	d := decoder(t, fakeSystem(t))
	for name, o := range map[string]order{"hang": {PID: true, Hang: true}, "spin": {PID: true, Spin: true}, "write": {PID: true, Out: frame4x2, Times: 1 << 40}} {
		for _, stop := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			id, last := 0, error(nil)
			for f, err := range d.Frames(ctx, sound().with("ffmpeg", o).film(t), every(1000)) {
				if last = err; err != nil {
					continue
				}
				if id == 0 {
					id = idOf(t, f)
					cancel()
				}
				if stop {
					break
				}
			}
			if !stop && !errors.Is(last, context.Canceled) {
				t.Errorf("%s: %v", name, last)
			}
			if id == 0 || alive(id) {
				t.Errorf("%s: process %d is alive", name, id)
			}
			cancel()
			noneLeft(t, d)
		}
	}
	// An ffprobe hangs.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := first(d.Frames(ctx, orders{"ffprobe": {Hang: true}}.film(t), every(1000)))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	noneLeft(t, d)
}

// first returns the first frame or the error.
func first(frames func(func(Frame, error) bool)) (f Frame, err error) {
	for f, err = range frames {
		break
	}
	return f, err
}

// TestSlowDecodersAreKilled checks that decoders that hang or use too much processor time are killed.
func TestSlowDecodersAreKilled(t *testing.T) {
	o := fakeSystem(t)
	for name, tt := range map[string]struct {
		orders orders
		time   time.Duration
		busy   bool // the host waits for the decoder's end instead of its output
	}{
		"ffprobe hangs": {orders{"ffprobe": {Hang: true}}, 200 * time.Millisecond, false},
		"ffmpeg hangs":  {sound().with("ffmpeg", order{PID: true, Hang: true}), 200 * time.Millisecond, false},
		"ffmpeg works":  {sound().with("ffmpeg", order{PID: true, Spin: true}), time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Time = tt.time
			d := decoder(t, o)
			far, last := "nothing", error(nil)
			for f, err := range d.Frames(t.Context(), tt.orders.film(t), every(1000)) {
				if last = err; err != nil {
					continue
				}
				far = "0 s"
				if id := idOf(t, f); tt.busy {
					until(t, "the system kills the decoder", func() bool { return !alive(id) })
				}
			}
			if want := "video takes more than " + tt.time.String() + " to decode: " + far + " of it was decoded"; !errors.Is(last, raster.ErrTooLarge) || last.Error() != want {
				t.Errorf("%v, want %s", last, want)
			}
			noneLeft(t, d)
		})
	}
}

// TestWaitingForDecoder occupies the only decoder, and all places for callers that wait for it.
func TestWaitingForDecoder(t *testing.T) {
	o := fakeSystem(t)

	d := decoder(t, o)
	d.slots = shares.New(1, 1)
	leave, err := d.Enter(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	wait := func(caller string) {
		leave, err := d.Enter(ctx, caller)
		if err == nil {
			leave()
		}
		ended <- err
	}
	go wait("second")
	until(t, "a caller waits", func() bool { return d.waiting.TotalInUse() == 1 })
	for i := 1; d.waiting.TryAcquire(strconv.Itoa(i), 1); i++ {
	}
	go wait("third")
	if err := <-ended; !errors.Is(err, ErrBusy) {
		t.Errorf("%v, want %v", err, ErrBusy)
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := d.slots.Acquire(ctx, "first", 1); err != nil {
		t.Fatal(err)
	}
	d.waiting.Release("1", 1)
	go wait("second")
	until(t, "a caller waits", func() bool { return d.waiting.InUse("second") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := d.waiting.InUse("second"); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// TestCallersShareDecoders checks that a caller with many films leaves a place to the next caller, on any number of cores.
func TestCallersShareDecoders(t *testing.T) {
	d := decoder(t, fakeSystem(t))
	if all := d.slots.Free(); all < 2 {
		t.Fatalf("%d films are decoded at a time, want at least 2", all)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // so that Enter does not wait
	var leaves []func()
	for {
		leave, err := d.Enter(ended, "first")
		if err != nil {
			break
		}
		leaves = append(leaves, leave)
	}
	leave, err := d.Enter(ended, "second")
	if len(leaves) == 0 || err != nil {
		t.Errorf("after %d films of one caller the next one: %v", len(leaves), err)
	} else {
		leave()
	}
	for _, leave := range leaves {
		leave()
	}
	noneLeft(t, d)
}

// TestModuleEnds stops reading in the middle of a film, and cancels the context, while the module decodes.
func TestModuleEnds(t *testing.T) {
	d, film := decoder(t, Options{}), writeFilm(t, newFilm(t, 25))
	for f, err := range d.Frames(t.Context(), film, every(100)) {
		if err != nil {
			t.Fatal(err)
		}
		if len(children(t, os.Getpid())) != 1 {
			t.Error("the module runs in no child")
		}
		if f.Index == 1 {
			break
		}
	}
	noneLeft(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	for f, err := range d.Frames(ctx, film, every(100)) {
		if last = err; err == nil && f.Index == 1 {
			cancel()
		}
	}
	cancel()
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
	noneLeft(t, d)
}

// TestNoModule decodes without a module, with another module and with a damaged one. With the published module it decodes.
func TestNoModule(t *testing.T) {
	good := decoder(t, Options{}).o
	name := filepath.Join(t.TempDir(), "module.gz")
	module, err := os.ReadFile(good.Module)
	if err != nil {
		t.Fatal(err)
	}
	film := writeFilm(t, newFilm(t, 2))
	d := decoder(t, Options{Module: name, Cache: good.Cache, Scratch: good.Scratch, Key: good.Key})
	for caseName, tt := range map[string]struct {
		module []byte
		text   string
	}{
		"missing":      {text: "the decoding module " + name + " is missing: install it there, or set --video-decoder"},
		"another":      {module: []byte("another"), text: "the decoding module " + name + " is not the one of " + moduleSource + ": its SHA-256 is ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5"},
		"cut short":    {module: module[:1000], text: "the decoding module " + name + " is not the one of " + moduleSource},
		"as published": {module: module},
	} {
		if tt.module != nil {
			if err := os.WriteFile(name, tt.module, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		switch _, err := all(t, d, film, every(1000)); {
		case tt.text == "" && err != nil, tt.text != "" && (!errors.Is(err, raster.ErrUnsupported) || !strings.HasPrefix(err.Error(), tt.text)):
			t.Errorf("%s: %v, want %q", caseName, err, tt.text)
		}
		noneLeft(t, d)
	}
	d = decoder(t, Options{System: filepath.Join(t.TempDir(), "ffmpeg")})
	_, err = all(t, d, film, every(1000))
	if want := "the decoder " + filepath.Join(filepath.Dir(d.o.System), "ffprobe") + " is missing"; !errors.Is(err, raster.ErrUnsupported) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestBadChild uses other programs as the decoding child.
func TestBadChild(t *testing.T) {
	for _, program := range []string{"/bin/true", "/bin/false", "/bin/cat"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
		d := decoder(t, Options{Program: program})
		_, err := all(t, d, writeFilm(t, newFilm(t, 2)), every(1000))
		if got := status(err); got != "31300" {
			t.Errorf("%s: %v", program, err)
		}
		noneLeft(t, d)
	}
}

// TestFullDisk checks the error if the disk has no space for a film.
func TestFullDisk(t *testing.T) {
	full := Options{Spool: func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) }}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	d := decoder(t, full)
	if _, err := d.Spool(write("film")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want %v", err, syscall.ENOSPC)
	}
	d.o.Spool = func() (*os.File, error) { return nil, syscall.ENOSPC }
	if _, err := d.Spool(write("film")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want %v", err, syscall.ENOSPC)
	}
}

// TestSpool stores a film, and one whose transfer fails.
func TestSpool(t *testing.T) {
	d := decoder(t, Options{})
	cut := errors.New("connection reset")
	if _, err := d.Spool(func(io.Writer) error { return cut }); !errors.Is(err, cut) {
		t.Error(err)
	}
	f, err := d.Spool(write("film"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := make([]byte, 5)
	if n, err := f.ReadAt(text, 0); string(text[:n]) != "film" || err != io.EOF {
		t.Errorf("%q, %v", text[:n], err)
	}
}

func write(film string) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.WriteString(to, film)
		return err
	}
}

// TestNoCacheFolder decodes although the folder of compiled modules was deleted.
func TestNoCacheFolder(t *testing.T) {
	testkit.Nightly(t) // it compiles
	d := decoder(t, Options{Cache: filepath.Join(t.TempDir(), "cache")})
	if err := os.RemoveAll(d.o.Cache); err != nil {
		t.Fatal(err)
	}
	if shots, err := all(t, d, writeFilm(t, newFilm(t, 2)), every(100)); len(shots) != 2 || err != nil {
		t.Errorf("%d frames, %v", len(shots), err)
	}
}

// TestStaleScratch checks that a new decoder deletes files that children of a killed process left.
func TestStaleScratch(t *testing.T) {
	o := Options{Cache: t.TempDir()}
	stale, compiled := filepath.Join(o.Cache, "sightline-123", "file"), filepath.Join(o.Cache, "compiled")
	for _, dir := range []string{stale, compiled} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := decoder(t, o)
	noneLeft(t, d)
	if _, err := os.Stat(compiled); err != nil {
		t.Error(err)
	}
}

// asParent makes the test binary decode a film until it is killed. TestChildEndsWithParent uses it.
const asParent = "decode-as-parent"

func parent(args []string) int {
	film, err := os.Open(args[0])
	if err != nil {
		panic(err)
	}
	o := Options{System: args[1], Module: args[2], Cache: args[3], Scratch: args[4]}
	if _, err := hex.Decode(o.Key[:], []byte(args[5])); err != nil {
		panic(err)
	}
	d, err := New(o)
	if err != nil {
		panic(err)
	}
	for _, err := range d.Frames(context.Background(), film, every(1000)) {
		if err != nil {
			panic(err)
		}
		println("decoding")
		time.Sleep(time.Hour)
	}
	return 0
}

// TestChildEndsWithParent kills the process that decodes, and checks that its child ends.
func TestChildEndsWithParent(t *testing.T) {
	hang := sound().with("ffmpeg", order{Out: frame4x2, Hang: true}).film(t)
	film, module := writeFilm(t, newFilm(t, 25)), decoder(t, Options{}).o
	for name, args := range map[string][]string{
		"system": {hang.Name(), fakeSystem(t).System, "", "", "", ""},
		"module": {film.Name(), "", module.Module, module.Cache, module.Scratch, hex.EncodeToString(module.Key[:])},
	} {
		cmd := exec.Command(self(t), append([]string{asParent}, args...)...)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("decoding"))
		if _, err := io.ReadFull(stderr, line); err != nil || string(line) != "decoding" {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		left := children(t, cmd.Process.Pid)
		if len(left) != 1 {
			t.Errorf("%s: %d processes", name, len(left))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, id := range left {
			until(t, name+": the child ends", func() bool { return !alive(id) })
		}
	}
}

// TestServe runs the child's code in this process. It answers each request, also without a module, and ends when its input ends.
func TestServe(t *testing.T) {
	o := decoder(t, Options{}).o
	one := oneFile{writeFilm(t, newFilm(t, 2))}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("another module"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ module, input, text string }{
		{o.Module, "/in", ""},
		{o.Module, "/none", "No such file or directory"},
		{o.Module, "/", "/: "},
		{filepath.Join(t.TempDir(), "none"), "/in", "is missing"},
		{wrong, "/in", "is not the one of"},
	} {
		var in, out bytes.Buffer
		requests := json.NewEncoder(&in)
		err := errors.Join(requests.Encode(setup{Module: tt.module, Cache: o.Cache, Scratch: t.TempDir(), Key: o.Key, Memory: film.MaxMemory}),
			requests.Encode(request{append([]string{"ffprobe"}, film.ProbeArgs(tt.input)...)}))
		ended := false
		if err = errors.Join(err, serve(t.Context(), &in, &out, one, func() { ended = true })); err != nil || !ended {
			t.Fatalf("%s, %s: %v", tt.module, tt.input, err)
		}
		output := &output{from: &out}
		probe, err := film.ReadProbe(output)
		f, broken := probe.Check(every(1))
		if r := output.result; tt.text == "" && (err != nil || broken != nil || f.Width != filmWidth || r != result{}) ||
			tt.text != "" && (!strings.Contains(r.Text+r.Module, tt.text) || r.Code == 0 && r.Module == "") {
			t.Errorf("%s, %s: %+v, %+v, %v", tt.module, tt.input, f, r, err)
		}
	}
	if err := serve(t.Context(), strings.NewReader("rubbish"), io.Discard, one, func() {}); err == nil {
		t.Error("rubbish is a setup")
	}
}
