package video

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

var update = flag.Bool("update", false, "store the outputs of the decoding modules instead of comparing them")

// jxlFile returns a file of package raster's testdata, which cjxl wrote.
func jxlFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "jxl", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func still(t testing.TB, picture []byte) *raster.Still {
	t.Helper()
	s, err := raster.ReadStill(picture, raster.Limits{})
	if err != nil || s == nil {
		t.Fatalf("ReadStill = %v, %v", s, err)
	}
	return s
}

// uprightPicture decodes a picture and renders it in full size.
func uprightPicture(t testing.TB, d *Decoder, picture []byte) (raster.Image, error) {
	t.Helper()
	planes, err := still(t, picture).Decode(func(runs []raster.Run) ([][]byte, error) { return d.Picture(t.Context(), runs) })
	if err != nil {
		return raster.Image{}, err
	}
	return raster.NewDecoder(raster.Limits{}).Planes(planes, raster.View{MaxSide: raster.MaxResultSide})
}

// TestPicture decodes JPEG XL files of a known picture: lossless ones exactly, over white, others nearly.
func TestPicture(t *testing.T) {
	d := decoder(t, Options{})
	over := func(v, alpha int) int { return (v*alpha + 255*(255-alpha) + 127) / 255 }
	colour := func(x, y int) [3]int { return [3]int{6 * x, 10 * y, x * y % 256} }
	alpha := func(x int) int {
		if x < 20 {
			return 255
		}
		return 15 * (x - 20)
	}
	mix := func(x, y int) (c [3]int) {
		for i, v := range colour(x, y) {
			c[i] = over(v, alpha(x))
		}
		return c
	}
	srgb := func(linear float64) int {
		if linear <= 0.0031308 {
			return int(255*12.92*linear + 0.5)
		}
		return int(255*(1.055*math.Pow(linear, 1/2.4)-0.055) + 0.5)
	}
	for _, tt := range []struct {
		name          string
		width, height int
		most, mean    float64 // largest and mean difference
		want          func(x, y int) [3]int
	}{
		{"rgba.jxl", 37, 23, 0, 0, mix},
		{"lossy.jxl", 37, 23, 90, 8, mix},
		{"icc-lossless.jxl", 37, 23, 0, 0, colour},
		{"a98.jxl", 37, 23, 130, 20, colour}, // its profile is not that of sRGB
		{"turned.jxl", 23, 37, 150, 12, func(x, y int) [3]int { return colour(y, 22-x) }},
		{"grey.jxl", 37, 23, 1, 1, func(x, y int) [3]int {
			c := colour(x, y)
			v := (299*c[0] + 587*c[1] + 114*c[2]) / 1000
			return [3]int{v, v, v}
		}},
		{"deep.jxl", 37, 23, 1, 0.1, func(x, y int) (c [3]int) {
			a := 255
			if x >= 20 {
				a = 4000 * (x - 20) >> 8
			}
			for i, v := range [3]int{1700 * x, 2800 * y, x * y * 77 % 65536} {
				c[i] = over(v>>8, a)
			}
			return c
		}},
		{"linear.jxl", 37, 23, 60, 4, func(x, y int) [3]int { return [3]int{srgb(float64(x) / 36), srgb(float64(22-y) / 22), srgb(0.5)} }},
	} {
		img, err := uprightPicture(t, d, jxlFile(t, tt.name))
		if err != nil || img.Width != tt.width || img.Height != tt.height {
			t.Errorf("%s: %d × %d, %v", tt.name, img.Width, img.Height, err)
			continue
		}
		most, sum := 0.0, 0.0
		for y := range img.Height {
			for x := range img.Width {
				want := tt.want(x, y)
				for i := range 3 {
					diff := math.Abs(float64(img.Pix[3*(y*img.Width+x)+i]) - float64(want[i]))
					most, sum = max(most, diff), sum+diff
				}
			}
		}
		if mean := sum / float64(len(img.Pix)); most > tt.most || mean > tt.mean {
			t.Errorf("%s: differs by up to %v, by %.2f in the mean", tt.name, most, mean)
		}
	}
	noneLeft(t, d)
}

// TestPictureOutputs compares the outputs of the decoding modules for the HEIC, AVIF and JPEG XL files of package raster with the stored ones,
// from which package models computes golden values at all targets.
func TestPictureOutputs(t *testing.T) {
	d := decoder(t, Options{})
	folder := filepath.Join(testkit.Root(t), "core", "predict", "raster")
	for _, pattern := range []string{"heif/testdata/*.*", "testdata/jxl/*.jxl"} {
		for name, picture := range testFiles(t, filepath.Join(folder, pattern)) {
			runs, err := still(t, picture).Runs()
			if err != nil {
				t.Fatal(err)
			}
			outputs, err := d.Picture(t.Context(), runs)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got, stored := slices.Concat(outputs...), filepath.Join(folder, "testdata", "outputs", name)
			if *update {
				if err := os.WriteFile(stored, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(stored); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: the output has %d bytes, SHA-256 %x; the stored one has %d, %v", name, len(got), sha256.Sum256(got), len(want), err)
			}
		}
	}
	noneLeft(t, d)
}

// TestLargestPictures decodes pictures of one colour with nearly as many pixels as README allows for their kinds, within the decoder's memory.
func TestLargestPictures(t *testing.T) {
	testkit.Nightly(t)
	d := decoder(t, Options{})
	for name, picture := range testFiles(t, filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "large", "*.*")) {
		planes, err := still(t, picture).Decode(func(runs []raster.Run) ([][]byte, error) { return d.Picture(t.Context(), runs) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		img, err := raster.NewDecoder(raster.Limits{}).Planes(planes, raster.View{Width: 1, Height: 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, want := range []byte{0x3a, 0x6e, 0xa5} {
			if diff := int(img.Pix[i]) - int(want); diff < -3 || diff > 3 {
				t.Errorf("%s has the colour %x, want 3a6ea5", name, img.Pix[:3])
				break
			}
		}
	}
	noneLeft(t, d)
}

// testFiles returns the files that match a pattern, by their names.
func testFiles(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestPictureDamaged decodes a file whose pixels are damaged or missing, and runs that do not fit a file.
func TestPictureDamaged(t *testing.T) {
	d := decoder(t, Options{})
	file := jxlFile(t, "lossy.jxl")
	damaged := slices.Clone(file)
	for i := len(damaged) / 3; i < len(damaged); i++ {
		damaged[i] ^= 0x5a
	}
	for name, picture := range map[string][]byte{"cut": file[:len(file)/2], "damaged": damaged} {
		if _, err := uprightPicture(t, d, picture); !errors.Is(err, raster.ErrCorrupt) || err.Error() != film.PictureError().Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
	run := raster.Run{Module: raster.JPEGXL, Format: "first", Input: file, Bytes: 4 * 37 * 23}
	for name, change := range map[string]func(*raster.Run){
		"too few bytes":  func(r *raster.Run) { r.Bytes-- },
		"too many bytes": func(r *raster.Run) { r.Bytes++ },
		"other output":   func(r *raster.Run) { r.Format = "second" },
		"no file":        func(r *raster.Run) { r.Input = nil },
	} {
		r := run
		change(&r)
		if _, err := d.Picture(t.Context(), []raster.Run{r}); !errors.Is(err, raster.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := run
	large.Bytes = film.MaxMemory
	if _, err := d.Picture(t.Context(), []raster.Run{large}); !errors.Is(err, raster.ErrTooLarge) || err.Error() != film.PictureMemoryError().Error() {
		t.Errorf("too much memory: %v", err)
	}
	noneLeft(t, d)
}

// TestDamagedPictures decodes damaged copies of JPEG XL files, and of some HEIC and AVIF, whose decoder takes longer to start. Each gives planes
// of its declared size or an error that users understand. It leaves no process and no folder.
func TestDamagedPictures(t *testing.T) {
	d := decoder(t, Options{})
	folder := filepath.Join(testkit.Root(t), "core", "predict", "raster")
	read := func(pattern string) (all [][]byte) {
		files := testFiles(t, filepath.Join(folder, pattern))
		for _, name := range slices.Sorted(maps.Keys(files)) {
			all = append(all, files[name])
		}
		return all
	}
	quick, slow := read("testdata/jxl/*.jxl"), slices.Concat(read("heif/testdata/*.heic"), read("heif/testdata/*.avif"))
	outcomes := map[string]int{}
	for seed := range testkit.Seeds(t, 100, 10_000) {
		draw := rand.New(rand.NewPCG(seed, 54))
		from := quick
		if seed%20 == 0 {
			from = slow
		}
		picture := slices.Clone(from[draw.IntN(len(from))])
		if draw.IntN(2) == 0 {
			picture = damage(picture, draw)
		} else {
			picture[draw.IntN(len(picture))] ^= 1 << draw.IntN(8)
		}
		s, err := raster.ReadStill(picture, raster.Limits{StillPixels: 4_000_000})
		if s == nil && err == nil {
			outcomes["another type"]++
			continue
		}
		if err == nil {
			_, err = s.Decode(func(runs []raster.Run) ([][]byte, error) { return d.Picture(t.Context(), runs) })
		}
		if err == nil && s.IsAnimation() {
			err = d.Animation(t.Context(), s, every(1000), func(*raster.Animation, io.Reader) error { return nil })
		}
		got := status(err)
		if outcomes[got]++; len(got) != 5 {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Log(outcomes)
	noneLeft(t, d)
}

// TestPictureWithoutModule decodes a JPEG XL without the module. The error names the file that is missing.
func TestPictureWithoutModule(t *testing.T) {
	d := decoder(t, Options{Module: filepath.Join(t.TempDir(), ModuleFile)})
	_, err := uprightPicture(t, d, jxlFile(t, "rgba.jxl"))
	if want := "the decoding module " + filepath.Join(filepath.Dir(d.o.Module), JXLFile) + " is missing: install it there"; !errors.Is(err, raster.ErrUnsupported) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	noneLeft(t, d)
}

// TestPictureEndsWithContext ends the context of a picture whose decoder has started.
func TestPictureEndsWithContext(t *testing.T) {
	d := decoder(t, fakeSystem(t))
	stream := orders{"ffmpeg": {PID: true, Hang: true}}.film(t)
	input, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan error, 1)
	run := raster.Run{Format: "hevc", Input: input, Bytes: 1 << 20}
	ctx, stop := context.WithCancel(t.Context())
	_, err = d.decode(ctx, run, film.PictureTimeout, func(out io.Reader) error {
		_, err := io.ReadFull(out, make([]byte, 12)) // its process id
		began <- err
		stop()
		_, err = io.Copy(io.Discard, out)
		return err
	})
	if failed := <-began; failed != nil || !errors.Is(err, ctx.Err()) || ctx.Err() == nil {
		t.Errorf("%v, %v", failed, err)
	}
	noneLeft(t, d)
}

// TestPictureTakesTooLong limits the processor time of a decoder that computes for ever.
func TestPictureTakesTooLong(t *testing.T) {
	d := decoder(t, fakeSystem(t))
	input, err := io.ReadAll(orders{"ffmpeg": {Spin: true}}.film(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.decode(t.Context(), raster.Run{Format: "hevc", Input: input, Bytes: 8}, time.Second, func(out io.Reader) error {
		_, err := io.ReadFull(out, make([]byte, 8))
		return err
	})
	if !errors.Is(err, raster.ErrTooLarge) || err.Error() != "picture takes more than 1s to decode" {
		t.Errorf("%v", err)
	}
	noneLeft(t, d)
}

// TestPictureOutput has a decoder of streams write another number of bytes than expected, and fail.
func TestPictureOutput(t *testing.T) {
	d := decoder(t, fakeSystem(t))
	for name, tt := range map[string]struct {
		order order
		fails bool
	}{
		"right":              {order{Out: "YYYYUV"}, false},
		"one byte less":      {order{Out: "YYYYU"}, true},
		"one byte more":      {order{Out: "YYYYUVY"}, true},
		"failure at the end": {order{Out: "YYYYUV", Code: 1}, true},
	} {
		input, err := io.ReadAll(orders{"ffmpeg": tt.order}.film(t))
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Picture(t.Context(), []raster.Run{{Format: "obu", Input: input, Bytes: 6}})
		if (err != nil) != tt.fails || tt.fails && !errors.Is(err, raster.ErrCorrupt) || !tt.fails && string(out[0]) != "YYYYUV" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	noneLeft(t, d)
}

// TestAnimation decodes an animation of three colours, of 1 s, 0.1 s, since the file's 0.01 s is too short, and 1.5 s.
func TestAnimation(t *testing.T) {
	d := decoder(t, Options{})
	s := still(t, jxlFile(t, "anim.jxl"))
	if !s.IsAnimation() || still(t, jxlFile(t, "rgba.jxl")).IsAnimation() {
		t.Fatal("the wrong file is an animation")
	}
	red, blue, green := [3]byte{255, 0, 0}, [3]byte{0, 0, 255}, [3]byte{0, 255, 0}
	for ms, want := range map[int][][3]byte{
		100: append(slices.Repeat([][3]byte{red}, 10), blue, green),
		550: {red, red, green},
	} {
		v := every(ms)
		var got [][3]byte
		err := d.Animation(t.Context(), s, v, func(a *raster.Animation, pixels io.Reader) error {
			frames, err := raster.NewDecoder(raster.Limits{}).Animation(a, pixels, v.SampleInterval())
			if err != nil {
				return err
			}
			if n := frames.Len(); n != len(want) || a.Len(v.SampleInterval()) != n {
				t.Errorf("%d ms: Len = %d", ms, n)
			}
			for {
				at, err := frames.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				img, err := frames.Image(raster.View{Width: 1, Height: 1})
				if err != nil || at != time.Duration(len(got)*ms)*time.Millisecond {
					t.Errorf("%d ms: %v, %v", ms, at, err)
				}
				got = append(got, [3]byte(img.Pix))
			}
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d ms: %v, %v, want %v", ms, got, err, want)
		}
	}
	failed := errors.New("failed")
	if err := d.Animation(t.Context(), s, every(100), func(*raster.Animation, io.Reader) error { return failed }); err != failed { //nolint:errorlint // it is returned as it is
		t.Errorf("%v, want %v", err, failed)
	}
	few := api.Video{SampleMS: 100, MaxFrames: 3}
	if err := d.Animation(t.Context(), s, few, nil); !errors.Is(err, raster.ErrTooLarge) || !strings.Contains(err.Error(), "12 frames") {
		t.Errorf("too many frames: %v", err)
	}
	img, err := uprightPicture(t, d, jxlFile(t, "anim.jxl"))
	if err != nil || [3]byte(img.Pix) != red || !bytes.Equal(img.Pix[3:6], red[:]) {
		t.Errorf("the first frame: %v", err)
	}
	noneLeft(t, d)
}

// TestServePictures runs the child's code for JPEG XL in this process. It compares the outputs with the stored ones, and asks for outputs that
// do not exist or have another size.
func TestServePictures(t *testing.T) {
	d := decoder(t, Options{})
	run := func(file []byte, args ...string) (out []byte, text string) {
		t.Helper()
		one, err := os.Create(filepath.Join(t.TempDir(), "in"))
		if err == nil {
			defer one.Close()
			_, err = one.Write(file)
		}
		var in, answers bytes.Buffer
		requests := json.NewEncoder(&in)
		err = errors.Join(err, requests.Encode(setup{
			Which: raster.JPEGXL, Module: d.file(raster.JPEGXL), Cache: d.o.Cache, Scratch: t.TempDir(), Key: d.o.Key, Memory: film.MaxMemory,
		}), requests.Encode(request{args}))
		if err = errors.Join(err, serve(t.Context(), &in, &answers, oneFile{one}, func() {})); err != nil {
			t.Fatal(err)
		}
		o := &output{from: &answers}
		if out, err = io.ReadAll(o); err != nil {
			t.Fatal(err)
		}
		return out, o.result.Text + o.result.Module
	}
	for _, name := range []string{"rgba.jxl", "deep.jxl", "anim.jxl"} {
		want, err := os.ReadFile(filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "outputs", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, text := run(jxlFile(t, name), "first", strconv.Itoa(len(want))); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want the stored %d; %s", name, len(got), len(want), text)
		}
	}
	animation := jxlFile(t, "anim.jxl")
	times, text := run(animation, "times", "20") // the number of frames, their durations in hundredths of a second, and zeros
	var numbers []uint32
	for b := times; len(b) >= 4; b = b[4:] {
		numbers = append(numbers, binary.LittleEndian.Uint32(b))
	}
	if want := []uint32{3, 100, 1, 150, 0}; !slices.Equal(numbers, want) {
		t.Errorf("times are %v, want %v; %s", numbers, want, text)
	}
	first, _ := os.ReadFile(filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "outputs", "anim.jxl"))
	if frames, text := run(animation, "frames", strconv.Itoa(3*len(first))); len(frames) != 3*len(first) || !bytes.HasPrefix(frames, first) {
		t.Errorf("%d bytes of frames, want %d, beginning with the first; %s", len(frames), 3*len(first), text)
	}
	for name, tt := range map[string]struct {
		file []byte
		args []string
		text string
	}{
		"nothing to do":  {animation, nil, ""},
		"no size":        {animation, []string{"first", "x"}, "invalid syntax"},
		"no file":        {nil, []string{"first", "8"}, "0 bytes"},
		"other output":   {animation, []string{"second", "8"}, "unknown output second"},
		"short times":    {animation, []string{"times", "3"}, errOutput.Error()},
		"no pixels":      {animation, []string{"first", "0"}, errOutput.Error()},
		"other pixels":   {animation, []string{"first", "8"}, ""},
		"damaged":        {animation[:20], []string{"first", "8"}, "cannot be decoded"},
		"damaged times":  {animation[:20], []string{"times", "8"}, "cannot be decoded"},
		"too large file": {animation, []string{"frames", strconv.Itoa(film.MaxMemory)}, ""},
	} {
		if out, text := run(tt.file, tt.args...); len(out) > 0 || !strings.Contains(text, tt.text) || name != "nothing to do" && text == "" {
			t.Errorf("%s: %d bytes, %q", name, len(out), text)
		}
	}
}
