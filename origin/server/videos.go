package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// Limits of a call to a server by the clock.
const (
	callTime          = 5 * time.Minute // without a video
	VideoDownloadTime = 5 * time.Minute // of the download of a video
)

// Names in the data folder.
const (
	DecoderDir = "decoder"     // the compiled decoding module
	decoderKey = "decoder.key" // the key that seals it
)

// DecoderCache returns the folder for the compiled decoding module in the folder dir, and the key that seals its files.
func DecoderCache(dir string) (cache string, key [32]byte, err error) {
	folder, err := system.OpenFolder(dir)
	if err != nil {
		return "", key, err
	}
	key, err = system.Key(folder, decoderKey)
	return filepath.Join(dir, DecoderDir), key, errors.Join(err, folder.Close())
}

// newDecoder makes the decoder of a server. Where the compiled module cannot be kept, each video compiles it.
func newDecoder(s *Settings, log *slog.Logger) (*video.Decoder, error) {
	o := video.Options{Module: s.VideoModule, System: s.VideoDecoder, Time: s.VideoTime, Log: log}
	if cache, key, err := DecoderCache(s.Data); err != nil {
		log.Warn("cannot keep the compiled decoding module", "error", err)
	} else {
		o.Cache, o.Key = cache, key
	}
	return video.New(o)
}

// videos are the videos of calls.
type videos struct {
	*video.Decoder
	n       *Node
	fetcher *fetch.Fetcher
}

var _ jobs.Videos = (*videos)(nil)

// Fetch implements [jobs.Videos].
func (v *videos) Fetch(ctx context.Context, url string, to io.Writer) error {
	if name, ours := v.n.hostedName(url); ours {
		b, _, err := v.n.Picture(ctx, name)
		if err == nil {
			_, err = to.Write(b)
		}
		return err
	}
	most := v.n.Settings.MaxVideo
	err := v.fetcher.Download(ctx, url, fetch.Limits{Kind: raster.Picture | raster.Video, Bytes: most, Timeout: VideoDownloadTime}, to)
	if failure := new(fetch.Failure); errors.As(err, &failure) && failure.TooLarge() {
		return fmt.Errorf("video of more than %d bytes: %w", most, raster.ErrTooLarge)
	}
	return err
}
