package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// Time limits of calls to the server.
const (
	callTime          = 5 * time.Minute // a call without a video
	VideoDownloadTime = 5 * time.Minute // the download of a video
)

// decodingMemory is the memory that must be available before a server compiles the decoding module without a video. Compiling takes 400 MB.
const decodingMemory = 1 << 30

// newDecoder creates the decoder of a server. If the server cannot store the compiled module, each video compiles it.
func newDecoder(s *Settings, log *slog.Logger) (*video.Decoder, error) {
	o := video.Options{Module: s.VideoModule, System: s.VideoDecoder, Time: s.VideoTime, Log: log}
	if code, err := OpenCodeCache(s.Cache, s.Data, DecoderCode); err != nil {
		log.Warn("cannot keep the compiled decoder of videos", "error", err)
	} else {
		o.Cache, o.Key = code.Dir, code.Key
		if code.Shared {
			o.Scratch = os.TempDir()
		}
		if err := code.Prune(video.CodeNames()...); err != nil {
			log.Warn("cannot remove old compiled decoders of videos", "error", err)
		}
	}
	return video.New(o)
}

// DecoderCompilation has the places of the decoding module and of its compiled form.
type DecoderCompilation struct {
	Cache, Data string            // as in [OpenCodeCache]
	Module      string            // file of the module; empty: next to the program
	Progress    func(percent int) // gets the estimated progress
}

// PrecompileDecoder compiles the decoding module unless its folder has it. It returns that folder, and whether it compiled the module.
func PrecompileDecoder(ctx context.Context, c DecoderCompilation) (folder string, compiled bool, err error) {
	code, err := OpenCodeCache(c.Cache, c.Data, DecoderCode)
	if err != nil {
		return "", false, err
	}
	d, err := video.New(video.Options{Module: c.Module, Cache: code.Dir, Key: code.Key, Scratch: os.TempDir(), Progress: c.Progress})
	if err != nil {
		return "", false, err
	}
	if _, err := d.Module(); err != nil {
		return "", false, err
	}
	compiled, err = d.Prepare(ctx)
	return code.Dir, compiled, errors.Join(err, code.Prune(video.CodeNames()...))
}

// prepareVideos compiles the decoding module, so that the first video need not wait for it.
func (n *Node) prepareVideos(ctx context.Context) {
	if system.MemoryAvailable() < decodingMemory {
		n.Log.Debug("the first video compiles its decoder, because less than 1 GB of memory is available")
		return
	}
	if _, err := n.decoder.Prepare(ctx); err != nil && ctx.Err() == nil {
		n.Log.Warn("cannot compile the decoder of videos", "error", err)
	}
}

// activity returns what the server does besides its calls, for the answer of /readyz. It returns "" for nothing.
func (n *Node) activity() string {
	if percent, running := n.decoder.Compiling(); running {
		return fmt.Sprintf("%s: about %d %%", video.CompilingStep, percent)
	}
	return ""
}

// videos downloads and decodes the videos of calls.
type videos struct {
	*video.Decoder
	n       *Node
	fetcher *fetch.Fetcher
}

var _ jobs.Videos = (*videos)(nil)

// Fetch implements [jobs.Videos].
func (v *videos) Fetch(ctx context.Context, app catalog.AppID, url string, to io.Writer) error {
	if path, ours := v.n.hostedPath(url); ours {
		b, err := v.n.fetchHosted(ctx, app, path)
		if err == nil {
			_, err = to.Write(b)
		}
		return err
	}
	limit := v.n.Settings.MaxVideo
	err := v.fetcher.Download(ctx, url, fetch.Limits{Kind: raster.Picture | raster.Video, Bytes: limit, Timeout: VideoDownloadTime}, to)
	if failure := new(fetch.Failure); errors.As(err, &failure) && failure.TooLarge() {
		return fmt.Errorf("video of more than %d bytes: %w", limit, raster.ErrTooLarge)
	}
	return err
}
