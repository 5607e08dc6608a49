package video

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/host"
)

// EnterPicture waits until another picture may be decoded, and reserves a place until leave is called. No picture waits for a film. A
// caller of Picture must have a place, which also bounds the memory of the outputs. The error is that of ctx.
func (d *Decoder) EnterPicture(ctx context.Context, caller string) (leave func(), err error) {
	if err := d.stills.Acquire(ctx, caller, 1); err != nil {
		return nil, err
	}
	return func() { d.stills.Release(caller, 1) }, nil
}

// Picture runs decoding modules for a picture and returns their outputs, in order. All runs together may take film.PictureTimeout of
// processor. If the error wraps ErrUnsupported, ErrTooLarge or ErrCorrupt of package raster, its text is for the caller of the API. Other
// errors are ctx's error and internal ones.
func (d *Decoder) Picture(ctx context.Context, runs []raster.Run) ([][]byte, error) {
	outputs := make([][]byte, len(runs))
	left := film.PictureTimeout
	for i, r := range runs {
		spent, err := d.decode(ctx, r, left, func(out io.Reader) (err error) {
			outputs[i] = make([]byte, r.Bytes)
			_, err = io.ReadFull(out, outputs[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		left = max(left-spent, time.Second)
	}
	return outputs, nil
}

// Animation decodes an animation as a video. It calls use once the module has decoded all frames; frames is for [raster.Decoder.Animation]. The
// errors are those of Picture, or use's error. The caller must have a place of [Decoder.Enter].
func (d *Decoder) Animation(ctx context.Context, s *raster.Still, v api.Video, use func(a *raster.Animation, frames io.Reader) error) error {
	times, err := d.Picture(ctx, []raster.Run{s.Times()})
	if err != nil {
		return err
	}
	a, err := s.Animation(times[0])
	if err != nil {
		return err
	}
	if err := v.Check(a.Len(v.SampleInterval())); err != nil {
		return err
	}
	var used error
	r := a.Run()
	_, err = d.decode(ctx, r, d.o.Time, func(out io.Reader) error {
		frames := bufio.NewReader(io.LimitReader(out, int64(r.Bytes)))
		if _, err := frames.Peek(1); err != nil {
			return err
		}
		if used = use(a, frames); used != nil {
			return errEnough
		}
		_, err := io.Copy(io.Discard, frames)
		return err
	})
	switch {
	case used != nil && errors.Is(err, errEnough):
		return used
	case err != nil:
		return fmt.Errorf("%d frames: %w", a.Frames(), err)
	}
	return nil
}

// waitFactor is the number by which the time that the host waits for a picture may exceed the processor's. Decoders have a low priority: with
// other work that kept both cores busy, a photo that takes a second of processor took half a minute.
const waitFactor = 10

// decode runs a module. use must read r.Bytes bytes, unless it returns an error.
func (d *Decoder) decode(ctx context.Context, r raster.Run, limit time.Duration, use func(out io.Reader) error) (spent time.Duration, err error) {
	if r.Module == raster.FFmpeg {
		if _, err := d.prepare(ctx); err != nil && ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	input, err := d.Spool(func(to io.Writer) error {
		_, err := to.Write(r.Input)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errStart, err)
	}
	defer input.Close() // only closes: the file has no name and was only read
	s, err := d.start(ctx, r.Module, input, limit)
	if err != nil {
		return 0, err
	}
	s.left = waitFactor * limit
	program, args := "ffmpeg", film.StreamArgs(s.input, r.Format)
	if r.Module == raster.JPEGXL {
		program, args = r.Format, []string{strconv.Itoa(r.Bytes)}
	}
	err = s.run(program, args, func(out io.Reader) error {
		if err := use(out); err != nil {
			return err
		}
		switch n, err := io.ReadFull(out, make([]byte, 1)); {
		case n > 0:
			return errMore
		case err != io.EOF:
			return err
		}
		return nil
	})
	s.close()
	if err != nil {
		err = s.explainPicture(err, limit)
	}
	return s.spent, err
}

// explainPicture converts the error of a run into an error for the caller.
func (s *session) explainPicture(err error, limit time.Duration) error {
	var known *film.Fault
	var failed *exitError
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.As(err, &known), errors.Is(err, errStart), errors.Is(err, errEnough):
		return err
	case errors.Is(err, errTime):
		return film.PictureTimeoutError(limit)
	case errors.As(err, &failed) && failed.memory:
		return film.PictureMemoryError()
	}
	s.d.o.Log.Debug("a picture cannot be decoded", "error", err)
	return film.PictureError()
}

// The module of JPEG XL exports one function:
//
//	decode(file, size, config_only, decode_all, *width, *height, *depth, *count, *durations, *pixels) → 0 for an error
//
// width, height and count are numbers of 4 bytes, low byte first, as are the durations, one for each frame. With config_only it writes no
// pixels. It writes more than one frame only with decode_all. It checks no length.

// errOutput is returned if the module's output has another size than the parent expects.
var errOutput = errors.New("the output has another size")

// react runs the module of JPEG XL once. args has the output that is wanted, a [raster.Run]'s format, and its size. Without args the module
// only has to be compiled.
func react(ctx context.Context, command *host.Command, args []string, file *os.File, out io.Writer) error {
	if len(args) == 0 {
		return nil
	}
	size, err := strconv.ParseUint(args[len(args)-1], 10, 32)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if n := info.Size(); n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%d bytes", n)
	}
	return command.React(ctx, func(r host.Reactor) error {
		d := jxlDecode{Reactor: r, size: uint32(info.Size()), most: maxShown}
		if args[0] == "times" {
			d.most = d.size/2 + 1 // a frame takes at least two bytes
		}
		if err := d.load(file); err != nil {
			return err
		}
		switch args[0] {
		case "times":
			return d.times(out, uint32(size))
		case "first", "frames":
			return d.frames(out, uint32(size), args[0] == "frames")
		}
		return errors.New("unknown output " + args[0])
	})
}

// jxlDecode is an instance of the module of JPEG XL with a file.
type jxlDecode struct {
	host.Reactor
	file, size uint32
	numbers    uint32 // address of width, height, depth and count
	durations  uint32 // address of the durations
	most       uint32 // maximum number of durations
}

// maxShown is the maximum number of frames whose pixels are decoded. The parent has checked their number, which is far lower.
const maxShown = 1 << 14

// load copies the file into the instance, and reserves memory for numbers and durations.
func (d *jxlDecode) load(file io.ReaderAt) (err error) {
	if d.file, err = d.Reserve(d.size); err != nil {
		return err
	}
	if d.numbers, err = d.Reserve(16); err != nil {
		return err
	}
	if d.durations, err = d.Reserve(4 * d.most); err != nil {
		return err
	}
	b, err := d.Bytes(d.file, d.size)
	if err == nil {
		_, err = io.ReadFull(io.NewSectionReader(file, 0, int64(d.size)), b)
	}
	return err
}

// decode calls the module, and returns width, height, depth and count.
func (d *jxlDecode) decode(configOnly, all uint64, pixels uint32) (numbers [4]uint64, err error) {
	at := func(i uint32) uint64 { return uint64(d.numbers + 4*i) }
	done, err := d.Call("decode", uint64(d.file), uint64(d.size), configOnly, all, at(0), at(1), at(2), at(3), uint64(d.durations), uint64(pixels))
	if err == nil && done == 0 {
		err = errors.New("the file cannot be decoded")
	}
	if err != nil {
		return numbers, err
	}
	b, err := d.Bytes(d.numbers, 16)
	if err != nil {
		return numbers, err
	}
	for i := range numbers {
		numbers[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return numbers, nil
}

// times writes the number of frames and their durations, and zeros up to size.
func (d *jxlDecode) times(out io.Writer, size uint32) error {
	numbers, err := d.decode(1, 0, 0)
	if err != nil {
		return err
	}
	if size < 4 || numbers[3] > uint64(d.most) {
		return errOutput
	}
	n := uint32(numbers[3])
	b, err := d.Bytes(d.durations, min(4*n, (size-4)/4*4))
	if err != nil {
		return err
	}
	b = append(binary.LittleEndian.AppendUint32(nil, n), b...)
	_, err = out.Write(append(b, make([]byte, int(size)-len(b))...))
	return err
}

// frames writes the pixels of the first frame or of all, which must have size bytes.
func (d *jxlDecode) frames(out io.Writer, size uint32, all bool) error {
	if size == 0 {
		return errOutput
	}
	pixels, err := d.Reserve(size)
	if err != nil {
		return err
	}
	decodeAll := uint64(0)
	if all {
		decodeAll = 1
	}
	numbers, err := d.decode(0, decodeAll, pixels)
	if err != nil {
		return err
	}
	sample := uint64(1)
	if numbers[2] == 16 {
		sample = 2
	}
	frame := 4 * sample * numbers[0] * numbers[1] // sides are below 2³⁰, so this does not overflow
	if max(numbers[0], numbers[1]) >= 1<<30 || frame == 0 || uint64(size)%frame != 0 || uint64(size)/frame != numbers[3] {
		return errOutput
	}
	b, err := d.Bytes(pixels, size)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(b, 1<<20) {
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return nil
}
