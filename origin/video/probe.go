package video

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Limits of a video. A film declares these numbers, or FFmpeg counts them.
const (
	maxLength  = 10 * time.Minute // from the first packet's time to the last one's
	maxPackets = 100_000
	maxPixels  = 4096 * 2176 // of a frame
	maxSide    = 8192        // pixels of a frame's width, or height
)

// maxProbe bounds ffprobe's answer: packets take 64 bytes each, and everything else is far below a megabyte.
const maxProbe = 8 << 20

// codecs are those that are read, by FFmpeg's names.
var codecs = []string{"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "h263", "mjpeg", "wmv1", "wmv2", "wmv3", "vc1"}

// demuxers are the containers that FFmpeg may take a film for, by its names: MP4 with MOV and 3GP, Matroska with WebM, AVI
// and WMV. None of them opens other files.
const demuxers = "mov,matroska,avi,asf"

// film has the properties of a video that ffprobe reports.
type film struct {
	raster.Planes     // of its frames, without Pix
	frames        int // wanted: one for each multiple of the sample time from the first frame's time to the last one's
}

// stream is a video stream in ffprobe's answer.
type stream struct {
	Codec       string `json:"codec_name"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Format      string `json:"pix_fmt"`
	Space       string `json:"color_space"`
	Range       string `json:"color_range"`
	TimeBase    string `json:"time_base"`
	Disposition struct {
		AttachedPicture int `json:"attached_pic"`
	} `json:"disposition"`
	SideData []struct {
		Rotation float64 `json:"rotation"` // degrees, counterclockwise
	} `json:"side_data_list"`
}

// packet is a packet in ffprobe's answer. Its times are in units of the stream's time base.
type packet struct {
	PTS   *int64 `json:"pts"`
	DTS   *int64 `json:"dts"` // of a container without presentation times
	Flags string `json:"flags"`
}

// span is the packets of a film that are shown.
type span struct {
	packets     int
	shown       bool  // first and last are set
	first, last int64 // the least and the greatest time
}

// probeArgs are the arguments with which ffprobe writes what readProbe reads.
func probeArgs(input string) []string {
	return []string{
		"-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file,pipe", "-format_whitelist", demuxers,
		"-select_streams", "v:0", "-show_entries", "packet=pts,dts,flags:stream=codec_name,width,height,pix_fmt,color_space,color_range,time_base:" +
			"stream_disposition=attached_pic:stream_side_data=rotation", "-of", "json=compact=1", input,
	}
}

// readProbe reads ffprobe's answer, of which it holds the first video stream only.
func readProbe(r io.Reader) (s *stream, all span, err error) {
	bounded := &io.LimitedReader{R: r, N: maxProbe}
	d := json.NewDecoder(bounded)
	defer func() {
		if bounded.N <= 0 {
			err = tooLarge("video with a description of more than %d MB", maxProbe>>20)
		}
	}()
	if err := open(d, '{'); err != nil {
		return nil, all, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, all, err
		}
		switch name {
		case "packets":
			err = each(d, all.add)
		case "streams":
			err = each(d, func(v stream) error { s = &v; return nil })
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return nil, all, err
		}
	}
	if _, err = d.Token(); err == nil {
		_, err = io.Copy(io.Discard, bounded)
	}
	return s, all, err
}

// open reads the beginning of an object or an array.
func open(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("%v, want %v", t, want)
	}
	return err
}

// each calls use with each element of an array.
func each[T any](d *json.Decoder, use func(T) error) error {
	if err := open(d, '['); err != nil {
		return err
	}
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		if err := use(v); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// add adds a packet.
func (s *span) add(p packet) error {
	if s.packets++; s.packets > maxPackets {
		return tooLarge("video of more than %d packets", maxPackets)
	}
	at := p.PTS
	if at == nil {
		at = p.DTS
	}
	if at == nil || strings.Contains(p.Flags, "D") { // D: an edit list leaves it out
		return nil
	}
	if !s.shown {
		s.shown, s.first, s.last = true, *at, *at
	}
	s.first, s.last = min(s.first, *at), max(s.last, *at)
	return nil
}

// check holds a video to the limits.
func check(s *stream, all span, w api.Video) (f film, err error) {
	switch {
	case s == nil || s.Disposition.AttachedPicture != 0 || !all.shown:
		return f, damaged("video without pictures")
	case !slices.Contains(codecs, s.Codec):
		return f, unsupported("video coded as %.40q: send H.264, HEVC, VP8, VP9, AV1, MPEG-4, H.263, MJPEG or WMV", s.Codec)
	case s.Width < 1 || s.Height < 1:
		return f, damaged("video with pictures of %d × %d", s.Width, s.Height)
	case s.Width > maxSide || s.Height > maxSide || s.Width*s.Height > maxPixels:
		return f, tooLarge("video of %d × %d: at most %.1f megapixels, and %d pixels a side", s.Width, s.Height, maxPixels/1e6, maxSide)
	}
	f.Planes = raster.Planes{Width: s.Width, Height: s.Height, Matrix: matrices[s.Space], Rotation: orientation(s)}
	if !samples(&f.Planes, s.Format) {
		return f, unsupported("video with samples of %.40q: send YCbCr with 8, 10 or 12 bits", s.Format)
	}
	f.Full = f.Full || s.Range == "pc"
	if s.Codec == "vp8" {
		f.Matrix = raster.BT601 // RFC 6386 has no other; a container may say something else
	}
	var unit, units int64
	if n, err := fmt.Sscanf(s.TimeBase, "%d/%d", &unit, &units); n != 2 || err != nil || min(unit, units) < 1 || max(unit, units) > math.MaxInt32 {
		return f, damaged("video with times in units of %.40q s", s.TimeBase)
	}
	seconds := (float64(all.last) - float64(all.first)) * float64(unit) / float64(units)
	if seconds > maxLength.Seconds() {
		return f, tooLarge("video of %.0f s: at most %.0f s", seconds, maxLength.Seconds())
	}
	f.frames = 1 + int((all.last-all.first)*unit*1000/(units*int64(w.SampleMS)))
	return f, w.Check(f.frames)
}

// orientation is EXIF's number of a stream's rotation, to the next right angle.
func orientation(s *stream) int {
	for _, d := range s.SideData {
		switch quarters := int(math.Mod(math.Round(d.Rotation/90), 4)+4) % 4; quarters {
		case 1:
			return 8
		case 2:
			return 3
		case 3:
			return 6
		}
	}
	return 1
}
