package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// headBytes is the number of bytes that suffice to recognise a file.
const headBytes = 4096

// media is a picture or a video that was read.
type media struct {
	video bool
	data  []byte   // bytes of a picture, or of an animation that counts as a video
	film  *os.File // file of any other video
}

func (m *media) close() {
	if m.film != nil {
		_ = m.film.Close() // it was only read
	}
}

// isVideo reports whether a file that begins with head is predicted as a video.
func (p *predictor) isVideo(head []byte) bool {
	kind := raster.Recognise(head).Kind
	return kind == raster.Video || kind&raster.Video != 0 && p.flags.animations
}

// read reads a picture or a video. The caller must close m, also after an error.
func (w *worker) read(ctx context.Context, pic picture) (m media, err error) {
	to := &intake{p: w.p}
	switch {
	case pic.err != nil:
		err = pic.err
	case pic.kind == isURL:
		wanted := fetch.Limits{Kind: raster.Picture | raster.Video, Bytes: w.p.maxVideo, Timeout: server.VideoDownloadTime}
		err = w.p.fetcher.Download(ctx, pic.name, wanted, to)
		if failure := new(fetch.Failure); errors.As(err, &failure) {
			err = fmt.Errorf("%w: %w", err, failure.Cause()) // the user may see the cause
		}
	case pic.kind == isStdin:
		_, err = io.Copy(to, w.stdin)
	default:
		err = w.p.readFile(pic.path, to)
	}
	switch {
	case to.err != nil:
		return to.media, to.err
	case err != nil:
		return to.media, errRead{err}
	}
	err = to.recognise()
	if to.film == nil {
		to.data = to.head.Bytes()
	}
	return to.media, err
}

// readFile reads a file that the user named. A video stays in its file.
func (p *predictor) readFile(name string, to *intake) (err error) {
	f, regular, err := system.Open(name)
	if err != nil {
		return err
	}
	defer func() {
		if to.film != f {
			err = errors.Join(err, f.Close())
		}
	}()
	if regular {
		head := make([]byte, headBytes)
		n, err := f.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if raster.Recognise(head[:n]).Kind == raster.Video {
			to.video, to.film = true, f
			return nil
		}
	}
	_, err = io.Copy(to, f)
	return err
}

// intake receives the bytes of a picture or a video. It holds a picture in memory, and stores a video in a file without a name.
type intake struct {
	media
	p          *predictor
	head       bytes.Buffer // all bytes of a picture; bytes of a video until it is recognised
	recognised bool
	written    int64
	err        error // of Write
}

// Write implements [io.Writer].
func (i *intake) Write(b []byte) (n int, err error) {
	if i.written += int64(len(b)); i.film != nil {
		_, err = i.film.Write(b)
	} else if i.head.Write(b); i.head.Len() >= headBytes {
		err = i.recognise()
	}
	switch {
	case err != nil:
	case i.film != nil && i.written > i.p.maxVideo:
		err = fmt.Errorf("video of more than %d bytes: %w", i.p.maxVideo, raster.ErrTooLarge)
	case i.film == nil && i.written > raster.SizeLimit(i.head.Bytes()):
		err = errRead{fmt.Errorf("more than %d bytes", raster.SizeLimit(i.head.Bytes()))}
	}
	if err != nil {
		i.err = err
		return 0, err
	}
	return len(b), nil
}

// recognise decides once whether the bytes are a picture or a video.
func (i *intake) recognise() (err error) {
	if i.recognised || i.film != nil {
		return nil
	}
	i.recognised = true
	i.video = i.p.isVideo(i.head.Bytes())
	if raster.Recognise(i.head.Bytes()).Kind == raster.Video {
		if i.film, err = system.Spool(); err == nil {
			_, err = i.film.Write(i.head.Bytes())
		}
	}
	return err
}

// newDecoder creates the decoder of videos. If the user has no cache folder for the compiled module, each video compiles it.
func (p *predictor) newDecoder() (*video.Decoder, error) {
	o := video.Options{Module: p.flags.videoModule, System: p.flags.videoDecoder, Scratch: os.TempDir(), Progress: p.compiling}
	if o.System == "" && p.cache != "" {
		if code, err := server.OpenCodeCache(p.cache, "", server.DecoderCode); err == nil {
			o.Cache, o.Key = code.Dir, code.Key
		}
	}
	return video.New(o)
}

// still decodes a picture that package raster does not decode, and analyses it, or the frames of an animation.
func (w *worker) still(ctx context.Context, m media, job *api.Job) (r api.Result, err error) {
	s, err := raster.ReadStill(m.data, raster.Limits{})
	if err != nil {
		return r, err
	}
	d, err := w.p.decoder()
	if err != nil {
		return r, err
	}
	leave, err := d.EnterPicture(ctx, "")
	if err != nil {
		return r, err
	}
	defer leave()
	if m.video && s.IsAnimation() {
		err = d.Animation(ctx, s, job.Video, func(a *raster.Animation, pixels io.Reader) error {
			w.deadline = system.Now().Add(video.DefaultTime)
			frames, err := w.decoder.Animation(a, pixels, job.Video.SampleInterval())
			if err == nil {
				r.Frames, err = job.Video.AnalyseFrames(w.analyser, frames, job.Want)
			}
			return err
		})
		return r, err
	}
	planes, err := s.Decode(func(runs []raster.Run) ([][]byte, error) { return d.Picture(ctx, runs) })
	if err != nil {
		return r, err
	}
	w.deadline = system.Now().Add(pictureTime)
	r.Analysis, err = w.analyser.AnalysePlanes(planes, job.Crop, job.Want)
	if m.video {
		r.Frames, r.Analysis = []api.Frame{{Analysis: r.Analysis}}, predict.Analysis{}
	}
	return r, err
}

// frames decodes a video and analyses its frames.
func (w *worker) frames(ctx context.Context, name string, film *os.File, job *api.Job) (seen []api.Frame, err error) {
	d, err := w.p.decoder()
	if err != nil {
		return nil, err
	}
	select {
	case w.p.films <- struct{}{}:
		defer func() { <-w.p.films }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for f, err := range d.Frames(ctx, film, job.Video) {
		if err != nil {
			return nil, err
		}
		w.deadline = system.Now().Add(pictureTime)
		analysis, err := w.analyser.AnalysePlanes(f.Planes, raster.Crop{}, job.Want)
		if err != nil {
			return nil, err
		}
		seen = append(seen, api.Frame{TimeMS: f.TimeMS, Analysis: analysis})
		w.progress.Frame(name, f.Index+1, f.Of)
	}
	return seen, nil
}
