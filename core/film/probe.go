package film

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Limits of a video. A film declares these numbers, or FFmpeg counts them.
const (
	maxLength  = 10 * time.Minute // from the first packet's time to the last one's
	MaxPackets = 100_000
	maxPixels  = 4096 * 2176 // of a frame
	maxSide    = 8192        // pixels of a frame's width, or height
)

// MaxProbe bounds ffprobe's answer, in bytes: packets take 64 bytes each, and everything else is far below a megabyte.
const MaxProbe = 8 << 20

// codecs are those that are read, by FFmpeg's names.
var codecs = []string{"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "h263", "mjpeg", "wmv1", "wmv2", "wmv3", "vc1"}

// demuxers are the containers that FFmpeg may take a film for, by its names: MP4 with MOV and 3GP, Matroska with WebM, AVI
// and WMV. None of them opens other files.
const demuxers = "mov,matroska,avi,asf"

// Film describes the frames of a film.
type Film struct {
	raster.Planes     // of its frames, without Pix
	Frames        int // wanted: one for each multiple of the sample time from the first frame's time to the last one's
}

// Probe is ffprobe's answer about a film.
type Probe struct {
	first *stream // nil: no video stream
	all   span
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
		Matrix string `json:"displaymatrix"` // three rows of an offset, such as 00000000:, and three integers
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

// ProbeArgs are the arguments with which ffprobe writes what ReadProbe reads.
func ProbeArgs(input string) []string {
	return []string{
		"-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file,pipe", "-format_whitelist", demuxers,
		"-select_streams", "v:0", "-show_entries", "packet=pts,dts,flags:stream=codec_name,width,height,pix_fmt,color_space,color_range,time_base:" +
			"stream_disposition=attached_pic:stream_side_data=displaymatrix", "-of", "json=compact=1", input,
	}
}

// ReadProbe reads ffprobe's answer, of which it holds the first video stream only.
func ReadProbe(r io.Reader) (p Probe, err error) {
	bounded := &io.LimitedReader{R: r, N: MaxProbe}
	d := json.NewDecoder(bounded)
	defer func() {
		if bounded.N <= 0 {
			err = TooLarge("video with a description of more than %d MB", MaxProbe>>20)
		}
	}()
	if err := open(d, '{'); err != nil {
		return p, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return p, err
		}
		switch name {
		case "packets":
			err = each(d, p.all.add)
		case "streams":
			err = each(d, func(v stream) error { p.first = &v; return nil })
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return p, err
		}
	}
	if _, err = d.Token(); err == nil {
		_, err = io.Copy(io.Discard, bounded)
	}
	return p, err
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
	if s.packets++; s.packets > MaxPackets {
		return TooLarge("video of more than %d packets", MaxPackets)
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

// Check holds a film to the limits.
func (p Probe) Check(w api.Video) (f Film, err error) {
	s, all := p.first, p.all
	switch {
	case s == nil || s.Disposition.AttachedPicture != 0 || !all.shown:
		return f, Damaged("video without pictures")
	case !slices.Contains(codecs, s.Codec):
		return f, Unsupported("video coded as %.40q: send H.264, HEVC, VP8, VP9, AV1, MPEG-4, H.263, MJPEG or WMV", s.Codec)
	case s.Width < 1 || s.Height < 1:
		return f, Damaged("video with pictures of %d × %d", s.Width, s.Height)
	case s.Width > maxSide || s.Height > maxSide || s.Width*s.Height > maxPixels:
		return f, TooLarge("video of %d × %d: at most %.1f megapixels, and %d pixels a side", s.Width, s.Height, maxPixels/1e6, maxSide)
	}
	f.Planes = raster.Planes{Width: s.Width, Height: s.Height, Matrix: matrices[s.Space], Rotation: orientation(s)}
	if !samples(&f.Planes, s.Format) {
		return f, Unsupported("video with samples of %.40q: send YCbCr with 8, 10 or 12 bits", s.Format)
	}
	f.Full = f.Full || s.Range == "pc" || s.Codec == "mjpeg" && s.Range != "tv" // FFmpeg reports no range for a grey JPEG
	if s.Codec == "vp8" {
		f.Matrix = raster.BT601 // RFC 6386 has no other; a container may say something else
	}
	var unit, units int64
	if n, err := fmt.Sscanf(s.TimeBase, "%d/%d", &unit, &units); n != 2 || err != nil || min(unit, units) < 1 || max(unit, units) > math.MaxInt32 {
		return f, Damaged("video with times in units of %.40q s", s.TimeBase)
	}
	seconds := (float64(all.last) - float64(all.first)) * float64(unit) / float64(units)
	if seconds > maxLength.Seconds() {
		return f, TooLarge("video of %.0f s: at most %.0f s", seconds, maxLength.Seconds())
	}
	f.Frames = 1 + int((all.last-all.first)*unit*1000/(units*int64(w.SampleMS)))
	return f, w.Check(f.Frames)
}

// DecodeArgs are the arguments with which ffmpeg writes the planes of f's frames, one frame behind the other, and perhaps
// some more: it shows the last frame for as long as it lasts, which may be beyond the next sample.
func (f *Film) DecodeArgs(input string, w api.Video) []string {
	return []string{
		"-hide_banner", "-loglevel", "error", "-noautorotate", "-reinit_filter", "0", "-xerror", "-err_detect", "explode", "-threads", "1",
		"-protocol_whitelist", "file,pipe", "-format_whitelist", demuxers, "-i", input, "-map", "0:v:0", "-fps_mode", "passthrough",
		"-vf", fmt.Sprintf("setpts=PTS-STARTPTS,fps=1000/%d:round=up,scale=%d:%d:flags=bicubic+accurate_rnd+bitexact", w.SampleMS, f.Width, f.Height),
		"-f", "rawvideo", "pipe:1",
	}
}

// orientation is EXIF's number of a stream's display matrix, to the next right angle.
func orientation(s *stream) int {
	for _, d := range s.SideData {
		var m []int64
		for _, text := range strings.Fields(d.Matrix) {
			if n, err := strconv.ParseInt(text, 10, 32); err == nil { // no offset
				m = append(m, n)
			}
		}
		if len(m) != 9 {
			continue
		}
		// A sample at (x, y) is shown at (ax + cy, bx + dy).
		a, b, c, d := m[0], m[1], m[3], m[4]
		turns := [4]int{1, 6, 3, 8} // by right angles clockwise
		if a*d < b*c {              // left and right are exchanged before
			a, b, turns = -a, -b, [4]int{2, 7, 4, 5}
		}
		switch lies := max(a, -a) < max(b, -b); {
		case lies && b > 0:
			return turns[1]
		case lies:
			return turns[3]
		case a < 0:
			return turns[2]
		}
		return turns[0]
	}
	return 1
}
