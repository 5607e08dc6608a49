package video

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/film"
)

// magic is the beginning of a film that contains orders for fake.
const magic = "\x00\x00\x00\x20ftyp"

// orders is the behaviour of fake, by program: ffprobe and ffmpeg.
type orders map[string]order

// order is the behaviour of one program. It does what the fields say, in their order.
type order struct {
	PID    bool   // it writes its process id, with the length of frame4x2
	Out    string // text that it writes
	Times  int    // number of times that it writes Out; 0: once
	Stderr string
	Spin   bool // it computes for ever
	Hang   bool // it sleeps for an hour
	Code   int  // exit status
}

// probe4x2 returns the output of ffprobe for a film of 4 × 2 pixels with a packet a second.
func probe4x2(packets int) string {
	var b strings.Builder
	for i := range packets {
		fmt.Fprintf(&b, `%s{"pts": %d, "flags": "K_"}`, cut(i == 0), i)
	}
	return `{"packets": [` + b.String() + `], "streams": [{"codec_name": "h264", "width": 4, "height": 2, "pix_fmt": "yuv420p", "time_base": "1/1"}]}`
}

func cut(first bool) string {
	if first {
		return ""
	}
	return ","
}

// frame4x2 is a frame of a film of 4 × 2 pixels.
const frame4x2 = "YYYYYYYYBBRR"

// film writes the orders into a film for fake.
func (o orders) film(t testing.TB) *os.File {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return writeFilm(t, append([]byte(magic), text...))
}

// fakeSystem makes a folder in which ffprobe and ffmpeg are this test's binary, and returns Options for it.
func fakeSystem(t testing.TB) Options {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ffprobe", "ffmpeg"} {
		if err := os.Symlink(self(t), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return Options{System: filepath.Join(dir, "ffmpeg")}
}

func self(t testing.TB) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// fake acts as ffprobe or ffmpeg: it carries out the orders in the film. It returns the exit status.
func fake(name string) int {
	if bad := unfit(); bad != "" {
		fmt.Fprintln(os.Stderr, bad)
		return 9
	}
	input := os.Args[len(os.Args)-1]
	if i := slices.Index(os.Args, "-i"); i >= 0 {
		input = os.Args[i+1]
	}
	text, err := os.ReadFile(input)
	var o orders
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(text, []byte(magic)), &o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 8
	}
	return o[name].obey()
}

// unfit checks the environment, the priority and the arguments of this process. It returns what is wrong, or "".
func unfit() string {
	if env := os.Environ(); len(env) != 0 {
		return "it has an environment"
	}
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || 20-raw < 10 {
		return "its priority is that of its parent"
	}
	formats := "-format_whitelist mov,matroska,avi,asf"
	if slices.Contains(os.Args, "hevc") || slices.Contains(os.Args, "obu") {
		formats = "-f "
	}
	for _, want := range []string{"-protocol_whitelist file,pipe", formats} {
		if !strings.Contains(strings.Join(os.Args, " "), want) {
			return want + " is missing"
		}
	}
	return ""
}

func (o order) obey() int {
	if o.PID {
		fmt.Printf("%-12d", os.Getpid())
	}
	for range cmp.Or(o.Times, 1) {
		if _, err := io.WriteString(os.Stdout, o.Out); err != nil {
			return 7
		}
	}
	fmt.Fprint(os.Stderr, o.Stderr)
	for sum := [sha256.Size]byte{}; o.Spin; sum = sha256.Sum256(sum[:]) {
	}
	if o.Hang {
		time.Sleep(time.Hour)
	}
	return o.Code
}

// sound returns orders for an undamaged film of three frames.
func sound() orders {
	return orders{"ffprobe": {Out: probe4x2(3)}, "ffmpeg": {Out: frame4x2, Times: 3}}
}

// with replaces the order of a program and returns o.
func (o orders) with(name string, other order) orders { o[name] = other; return o }

// TestBadDecoders decodes with programs that fail, lie, or write rubbish, too much or nothing. It checks the status and the text of
// each error, and that no process is left when Decode returns.
func TestBadDecoders(t *testing.T) {
	const unread = "video damaged: its index is missing or cannot be read"
	tests := map[string]struct {
		orders orders
		want   api.Video
		frames int
		status string
		text   string
	}{
		"sound":                   {orders: sound(), frames: 3, status: "10000"},
		"one frame more":          {orders: sound().with("ffmpeg", order{Out: frame4x2, Times: 4}), frames: 3, status: "10000"},
		"part of a frame more":    {orders: sound().with("ffmpeg", order{Out: "YBR", Times: 13}), frames: 3, status: "31300", text: "video damaged after 2 s"},
		"too much":                {orders: sound().with("ffmpeg", order{Out: frame4x2, Times: 1 << 40}), frames: 3, status: "10000"},
		"a frame less":            {orders: sound().with("ffmpeg", order{Out: frame4x2, Times: 2}), frames: 2, status: "31300", text: "video damaged after 1 s"},
		"half a frame":            {orders: sound().with("ffmpeg", order{Out: frame4x2[:6]}), status: "31300", text: "video damaged from its beginning"},
		"nothing":                 {orders: sound().with("ffmpeg", order{}), status: "31300", text: "video damaged from its beginning"},
		"failure at the end":      {orders: sound().with("ffmpeg", order{Out: frame4x2, Times: 3, Code: 1}), frames: 3, status: "31300", text: "video damaged after 2 s"},
		"failure in the middle":   {orders: sound().with("ffmpeg", order{Out: frame4x2, Times: 1, Code: 69}), frames: 1, status: "31300", text: "video damaged after 0 s"},
		"no memory":               {orders: sound().with("ffmpeg", order{Stderr: "Cannot allocate memory", Code: 1}), status: "31105", text: "video takes more than 512 MB of memory to decode"},
		"probe: rubbish":          {orders: sound().with("ffprobe", order{Out: "\x00rubbish"}), status: "31300", text: unread},
		"probe: nothing":          {orders: sound().with("ffprobe", order{}), status: "31300", text: unread},
		"probe: empty object":     {orders: sound().with("ffprobe", order{Out: "{}"}), status: "31300", text: "video without pictures"},
		"probe: failure":          {orders: sound().with("ffprobe", order{Out: probe4x2(3), Code: 1}), status: "31300", text: unread},
		"probe: too much":         {orders: sound().with("ffprobe", order{Out: probe4x2(3) + strings.Repeat(" ", 1<<20), Times: 1 << 40}), status: "31105", text: "video with a description of more than 8 MB"},
		"probe: too many packets": {orders: sound().with("ffprobe", order{Out: probe4x2(film.MaxPackets + 1)}), status: "31105", text: "video of more than 100000 packets"},
		"too many frames":         {orders: sound(), want: api.Video{SampleMS: 100, MaxFrames: 20}, status: "31105", text: "21 frames: at most 20, take a larger sample_ms"},
	}
	d := decoder(t, fakeSystem(t))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.want.SampleMS == 0 {
				tt.want = every(1000)
			}
			shots, err := all(t, d, tt.orders.film(t), tt.want)
			if got := status(err); got != tt.status || len(shots) != tt.frames || err != nil && err.Error() != tt.text {
				t.Errorf("%d frames, status %s: %v; want %d, %s: %s", len(shots), got, err, tt.frames, tt.status, tt.text)
			}
			noneLeft(t, d)
		})
	}
}

// noneLeft checks that a decoder has left no process and no folder.
func noneLeft(t testing.TB, d *Decoder) {
	t.Helper()
	if left := children(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if scratch := cmp.Or(d.o.Scratch, d.o.Cache); scratch != "" {
		if left, _ := filepath.Glob(filepath.Join(scratch, "sightline-*")); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	}
	if n := d.slots.TotalInUse() + d.waiting.TotalInUse() + d.stills.TotalInUse(); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// children returns the processes that a process has started and that have not been waited for.
func children(t testing.TB, of int) (all []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skipf("there is no /proc: %v", err)
	}
	for _, name := range stats {
		text, _ := os.ReadFile(name) // an error means that the process has ended
		if parent, alive := parentOf(string(text)); alive && parent == of {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, id)
		}
	}
	return all
}

// parentOf parses /proc/…/stat. A process that has ended is not alive, even if its parent has not waited for it.
func parentOf(stat string) (parent int, alive bool) {
	_, rest, _ := strings.Cut(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(f[1])
	return parent, err == nil && f[0] != "Z" && f[0] != "X"
}
