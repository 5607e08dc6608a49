// Package video extracts pictures from videos, and decodes pictures that package raster does not. FFmpeg and libjxl decode in a separate
// process. This package reads only the first 4 KiB of a film.
//
//	film, a file ──▶ ffprobe ──JSON──▶ limits ──▶ ffmpeg ──planes, one frame at a time──▶ Frames
//	                 └── the decoding module in a child process, under wazero; or a system's FFmpeg ──┘
//	picture ──▶ raster.ReadStill ──runs──▶ ffmpeg or the module of JPEG XL, in the same way ──▶ raster.Still.Planes
//
// The module is a WASI program. The child that runs it is this program with the command decode-video. The child has the film and its
// pipes. It has no environment, no data folder and no network. The parent does not trust the child: it checks every number against the
// limits before it allocates memory, and counts the bytes of every frame. The parent kills the child when its time is up or the caller's
// context ends. The child dies with its parent.
//
// The frame for the time i·SampleMS after the first shown frame is the last frame with a presentation time up to then.
//
// The package does not decode other pictures and animations, and knows nothing of concepts.
package video

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// DefaultTime is the default of Options.Time.
const DefaultTime = film.DefaultTimeout

// minSlots is the minimum number of films that are decoded at a time. One caller gets at most half of the places that are free, so with two
// places the film of one caller never delays another caller. Each film takes up to film.MaxMemory.
const minSlots = 2

// waiting is the maximum number of films that wait for a decoder. One caller gets at most half of these places.
const waiting = 8

// Options are the settings of a [Decoder].
type Options struct {
	Program string        // file of this program, which has the command decode-video; empty: the running file
	Module  string        // file of the decoding module; empty: ModuleFile next to Program
	System  string        // file of a system's ffmpeg, with ffprobe next to it, instead of the module; empty: the module
	Cache   string        // folder for the compiled module; empty: each film compiles it
	Scratch string        // folder for temporary files while a module is compiled; empty: Cache, which then belongs to this process alone
	Key     [32]byte      // seals the files of Cache
	Time    time.Duration // limit of a film's processor time, and of the time that the host waits for its output; 0: DefaultTime
	Log     *slog.Logger  // gets FFmpeg's messages about films that fail, at Debug; nil: no log

	Progress func(percent int) // gets the estimated progress of compiling the module, about once a second; nil: nobody does

	Spool func() (*os.File, error) // creates a file without a name; nil: system.Spool
}

// Decoder decodes films. It is safe for concurrent use.
type Decoder struct {
	o       Options
	slots   *shares.Shares // places for films that are decoded: half of the cores, at least minSlots
	waiting *shares.Shares // places for films that wait for a slot
	stills  *shares.Shares // places for pictures that are decoded: half of the cores, at least one

	preparation preparation
}

// New creates a decoder. It does not check the module: if the module is missing, each film fails. If only Cache is set, New creates that
// folder and deletes the temporary folders in it.
func New(o Options) (*Decoder, error) {
	if o.Program == "" {
		program, err := system.Executable()
		if err != nil {
			return nil, err
		}
		o.Program = program
	}
	o.Module = cmp.Or(o.Module, filepath.Join(filepath.Dir(o.Program), ModuleFile))
	o.Time = cmp.Or(o.Time, DefaultTime)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Spool == nil {
		o.Spool = system.Spool
	}
	if o.Cache != "" && o.Scratch == "" {
		if err := tidy(o.Cache); err != nil {
			return nil, fmt.Errorf("folder of the compiled decoding module: %w", err)
		}
	}
	half := int64(system.Cores()) / 2
	return &Decoder{
		o: o, slots: shares.New(max(minSlots, half), 1), waiting: shares.New(waiting, 1), stills: shares.New(max(1, half), max(1, half)),
	}, nil
}

// tidy creates the folder of compiled modules. It deletes temporary folders that remained there when a process was killed.
func tidy(cache string) (err error) {
	folder, err := system.OpenFolder(cache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	names, err := folder.ReadDir(".")
	for _, name := range names {
		if strings.HasPrefix(name, system.TempPrefix) {
			err = errors.Join(err, folder.RemoveAll(name))
		}
	}
	return err
}

// Spool creates a file without a name and calls write with it. The caller must close the file.
func (d *Decoder) Spool(write func(to io.Writer) error) (*os.File, error) {
	f, err := d.o.Spool()
	if err != nil {
		return nil, err
	}
	if err := write(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Frame is a frame of a film.
type Frame struct {
	Index  int   // number of the frame, from 0
	Of     int   // number of wanted frames
	TimeMS int64 // time after the first frame in milliseconds: Index times Video.SampleMS
	Planes raster.Planes
}

// Frames decodes a film and yields its frames in order. A frame's Pix is valid until the next frame. Decoding waits while the caller uses a
// frame. The first film compiles the module, and films that come meanwhile wait for it. Frames yields an error last, after all of its
// processes have ended. If the error wraps ErrUnsupported, ErrTooLarge or ErrCorrupt of package raster, its text is for the caller of the
// API. Other errors are ctx's error and internal ones.
func (d *Decoder) Frames(ctx context.Context, film *os.File, w api.Video) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		wanted := true
		err := d.frames(ctx, film, w, func(f Frame) bool { wanted = yield(f, nil); return wanted })
		if err != nil && wanted {
			yield(Frame{}, err)
		}
	}
}

func (d *Decoder) frames(ctx context.Context, file *os.File, w api.Video, yield func(Frame) bool) error {
	if err := recognise(file); err != nil {
		return err
	}
	if _, err := d.prepare(ctx); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	s, err := d.start(ctx, raster.FFmpeg, file, d.o.Time)
	if err != nil {
		return err
	}
	defer s.close()
	found, err := s.probe(w)
	if err != nil {
		return err
	}
	return s.decode(found, w, yield)
}

// Enter waits until another film may be decoded, and reserves a place until leave is called. A caller of Frames must have a place. Enter
// returns ErrBusy if too many films wait, or the error of ctx.
func (d *Decoder) Enter(ctx context.Context, caller string) (leave func(), err error) {
	if !d.slots.TryAcquire(caller, 1) {
		if !d.waiting.TryAcquire(caller, 1) {
			return nil, ErrBusy
		}
		defer d.waiting.Release(caller, 1)
		if err := d.slots.Acquire(ctx, caller, 1); err != nil {
			return nil, err
		}
	}
	return func() { d.slots.Release(caller, 1) }, nil
}

// recognise returns an error if the first 4 KiB of a file are not those of a video or picture.
func recognise(file *os.File) error {
	head := make([]byte, 4096)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	_, err = raster.InspectVideo(head[:n])
	return err
}

// probe reads the properties of the film with ffprobe and checks them against the limits.
func (s *session) probe(w api.Video) (film.Film, error) {
	var p film.Probe
	err := s.run("ffprobe", film.ProbeArgs(s.input), func(out io.Reader) (err error) {
		p, err = film.ReadProbe(out)
		return err
	})
	if err != nil {
		return film.Film{}, s.explain(err, film.ProbeError(), 0, w)
	}
	return p.Check(w)
}

// decode yields the frames of a film.
func (s *session) decode(f film.Film, w api.Video, yield func(Frame) bool) error {
	frame := Frame{Of: f.Frames, Planes: f.Planes}
	size, err := f.Size()
	if err != nil {
		return err
	}
	frame.Planes.Pix = make([]byte, size)
	read := 0
	err = s.run("ffmpeg", f.DecodeArgs(s.input, w), func(out io.Reader) error {
		for ; read < f.Frames; read++ {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			if _, err := io.ReadFull(out, frame.Planes.Pix); err != nil {
				return err
			}
			frame.Index, frame.TimeMS = read, int64(read)*int64(w.SampleMS)
			if !yield(frame) {
				return errEnough
			}
		}
		// FFmpeg repeats the last frame for its whole duration, so there may be a frame after the wanted ones. FFmpeg has decoded the
		// whole film by then.
		switch _, err := io.ReadFull(out, frame.Planes.Pix); err {
		case nil:
			return errEnough
		case io.EOF:
			return nil
		default:
			return err
		}
	})
	if err == nil || errors.Is(err, errEnough) {
		return nil
	}
	return s.explain(err, film.DecodeError(read, w), read, w)
}

// explain converts the error of a run into an error for the caller. damage is the error for a film that FFmpeg cannot decode, and frames
// is the number of decoded frames.
func (s *session) explain(err, damage error, frames int, w api.Video) error {
	var known *film.Fault
	var failed *exitError
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.As(err, &known), errors.Is(err, errStart):
		return err
	case errors.Is(err, errTime):
		return film.TimeoutError(s.d.o.Time, frames, w)
	case errors.As(err, &failed) && failed.memory:
		return film.MemoryError()
	}
	s.d.o.Log.Debug("a video cannot be decoded", "error", err)
	return damage
}
