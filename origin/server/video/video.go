// Package video takes pictures out of videos. FFmpeg decodes, in a separate process, and this package reads none of a film's
// bytes but the first few.
//
//	film, a file ──▶ ffprobe ──JSON──▶ limits ──▶ ffmpeg ──planes, one frame at a time──▶ Frames
//	                 └── the decoding module in a child process, under wazero; or a system's FFmpeg ──┘
//
// The module is a WASI program. Its child is the program itself, as the command decode-video: it has the film and its pipes,
// and no environment, no arguments of interest, no data folder and no network. The parent does not trust
// the child: it checks every number against the limits before it takes memory, and counts the bytes of every frame.
// A child is killed when its time is up, or its caller has gone, and it dies with its parent.
//
// The frame at i·SampleMS after the first shown frame is the one with the greatest presentation time that is not later.
//
// The package does not recognise still pictures, GIF and animated WebP, and knows nothing of concepts.
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
	"github.com/sightline-dev/sightline/origin/server/shares"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// DefaultTime bounds the decoding of a film; see Options.Time.
const DefaultTime = film.DefaultTime

// waiting is the number of films that may wait for a decoder. One caller has half of the free places at most.
const waiting = 8

// Options are the settings of a [Decoder].
type Options struct {
	Program string        // this program's file, which decodes as decode-video; empty: the file that runs
	Module  string        // file of the decoding module; empty: ModuleFile next to Program
	System  string        // file of a system's ffmpeg, with ffprobe next to it, instead of the module; empty: the module
	Cache   string        // folder for the compiled module; empty: each film compiles it
	Scratch string        // folder for files while a module is compiled; empty: Cache, which no other process may use then
	Key     [32]byte      // seals the files of Cache
	Time    time.Duration // processor time of one film, and time by the clock that the host waits for it; 0: DefaultTime
	Log     *slog.Logger  // what FFmpeg writes of a film that fails, at Debug; nil: nothing is logged

	Spool func() (*os.File, error) // makes a file without a name; nil: system.Spool
}

// Decoder decodes films. It is safe for concurrent use.
type Decoder struct {
	o       Options
	slots   *shares.Shares // a place for each film that is decoded: half of the cores, at least 1
	waiting *shares.Shares // a place for each film that waits for one
}

// New makes a decoder. It looks at no file: a missing module is an error of each film.
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
	return &Decoder{o, shares.New(max(1, int64(system.Cores())/2), 1), shares.New(waiting, 1)}, nil
}

// tidy makes the folder of compiled modules, and removes what children of a process that was killed left in it.
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

// Spool makes a file without a name, which the caller closes, and has it written.
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
	Index  int   // from 0
	Of     int   // frames wanted
	TimeMS int64 // after the first frame: Index times Video.SampleMS
	Planes raster.Planes
}

// Frames decodes a film and yields its frames in order. A frame's Pix is valid until the next frame, and a caller that takes
// its time holds the decoder up. An error is the last thing yielded, and everything that was started has ended by
// then. Its text is for the caller of the interface where it wraps an error of package raster: ErrUnsupported,
// ErrTooLarge or ErrCorrupt. The error of ctx is another; any other is internal.
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
	s, err := d.start(ctx, file)
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

// Enter waits for a decoder, which callers share, until leave. The caller of Frames has one. The error is ErrBusy, or that of ctx.
func (d *Decoder) Enter(ctx context.Context, caller string) (leave func(), err error) {
	if !d.slots.Try(caller, 1) {
		if !d.waiting.Try(caller, 1) {
			return nil, ErrBusy
		}
		defer d.waiting.Give(caller, 1)
		if err := d.slots.Take(ctx, caller); err != nil {
			return nil, err
		}
	}
	return func() { d.slots.Give(caller, 1) }, nil
}

// recognise refuses a file that is not a video for FFmpeg.
func recognise(file *os.File) error {
	head := make([]byte, 4096)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	_, err = raster.InspectVideo(head[:n])
	return err
}

// probe finds out what a film is, and holds it to the limits.
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
		// FFmpeg shows the last frame for as long as it lasts, which may be beyond the next sample. All of the film has been
		// decoded by then.
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

// explain turns the error of a run into one for the caller. damage is the error of a film that FFmpeg failed at, and so many
// frames of it were decoded.
func (s *session) explain(err, damage error, frames int, w api.Video) error {
	var known *film.Fault
	var failed *exitError
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.As(err, &known), errors.Is(err, errStart):
		return err
	case errors.Is(err, errTime):
		return film.TooLong(s.d.o.Time, frames, w)
	case errors.As(err, &failed) && failed.memory:
		return film.TooMuchMemory()
	}
	s.d.o.Log.Debug("a video cannot be decoded", "error", err)
	return damage
}
