package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
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

// Names of files in the data folder.
const (
	DecoderDir = "decoder"     // folder of the compiled decoding module
	decoderKey = "decoder.key" // key that seals the files in DecoderDir
)

// DecoderCache returns the folder for the compiled decoding module in the data folder dir, and the key that seals its files. It creates the
// key if the key is missing.
func DecoderCache(dir string) (cache string, key [32]byte, err error) {
	folder, err := system.OpenFolder(dir)
	if err != nil {
		return "", key, err
	}
	key, err = system.Key(folder, decoderKey)
	return filepath.Join(dir, DecoderDir), key, errors.Join(err, folder.Close())
}

// newDecoder creates the decoder of a server. If the server cannot store the compiled module, each video compiles it.
func newDecoder(s *Settings, log *slog.Logger) (*video.Decoder, error) {
	o := video.Options{Module: s.VideoModule, System: s.VideoDecoder, Time: s.VideoTime, Log: log}
	if cache, key, err := DecoderCache(s.Data); err != nil {
		log.Warn("cannot keep the compiled decoding module", "error", err)
	} else {
		o.Cache, o.Key = cache, key
	}
	return video.New(o)
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
