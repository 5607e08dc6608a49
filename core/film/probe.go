package film

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Limits of a video. A film declares these numbers, or FFmpeg counts them.
const (
	maxLength  = 10 * time.Minute // from the first packet's time to the last one's
	MaxPackets = 100_000
	maxPixels  = 4096 * 2176 // of a frame
	maxSide    = 8192        // pixels of a frame's width, or height
)

// MaxProbe is the maximum length of ffprobe's answer in bytes: packets take 64 bytes each, and everything else is far below a megabyte.
const MaxProbe = 8 << 20

// codecs are FFmpeg's names of the accepted codecs.
var codecs = []string{"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "h263", "mjpeg", "wmv1", "wmv2", "wmv3", "vc1"}

// demuxers are FFmpeg's names of the accepted containers: MP4 with MOV and 3GP, Matroska with WebM, AVI and WMV. None of them opens other
// files.
const demuxers = "mov,matroska,avi,asf"

// Film describes the frames of a film.
type Film struct {
	raster.Planes     // of the frames, without Pix
	Frames        int // number of samples: one for each multiple of the sample time from the first frame's time to the last one's
}

// Probe is ffprobe's answer about a film.
type Probe struct {
	first *stream // nil if there is no video stream
	all   span
}

// stream is a video stream in ffprobe's answer.
type stream struct {
	Codec           string
	Width, Height   int
	Format          string
	Space           string
	Range           string
	TimeBase        string
	AttachedPicture int      // 1 if it is a picture, such as an album's cover
	Matrices        []string // display matrices: three rows of an offset, such as 00000000:, and three integers
}

// packet is a packet in ffprobe's answer. Its times are in units of the stream's time base.
type packet struct {
	PTS   *int64
	DTS   *int64 // for containers without presentation times
	Flags string
}

// span counts the packets of a film, and has the times of those that are shown.
type span struct {
	packets     int
	hasTimes    bool  // first and last are set
	first, last int64 // smallest and greatest time
}

// ProbeArgs returns the arguments with which ffprobe writes the answer for ReadProbe.
func ProbeArgs(input string) []string {
	return []string{
		"-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file,pipe", "-format_whitelist", demuxers,
		"-select_streams", "v:0", "-show_entries", "packet=pts,dts,flags:stream=codec_name,width,height,pix_fmt,color_space,color_range,time_base:" +
			"stream_disposition=attached_pic:stream_side_data=displaymatrix", "-of", "json=compact=1", input,
	}
}

// ReadProbe reads ffprobe's answer. It keeps only the first video stream.
func ReadProbe(r io.Reader) (p Probe, err error) {
	answer, err := io.ReadAll(io.LimitReader(r, MaxProbe))
	if err != nil {
		return p, err
	}
	if len(answer) == MaxProbe {
		return p, tooLargeError("video with a description of more than %d MB", MaxProbe>>20)
	}
	var d jsonio.Doc
	if err := d.Parse(answer, jsonio.Limits{Members: MaxProbe}); err != nil {
		return p, err
	}
	for v := range d.Root().Get("packets").Elems() {
		var at packet
		if err := at.scan(v); err != nil {
			return p, err
		}
		if err := p.all.add(at); err != nil {
			return p, err
		}
	}
	for v := range d.Root().Get("streams").Elems() {
		p.first = new(stream)
		if err := p.first.scan(v); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *packet) scan(v jsonio.Value) error {
	at := func(to **int64) func(jsonio.Value) error {
		return func(v jsonio.Value) error {
			n, err := v.Int()
			*to = &n
			return err
		}
	}
	return v.Scan(
		jsonio.Var{Name: "pts", To: at(&p.PTS)},
		jsonio.Var{Name: "dts", To: at(&p.DTS)},
		jsonio.Var{Name: "flags", To: &p.Flags},
	)
}

func (s *stream) scan(v jsonio.Value) error {
	return v.Scan(
		jsonio.Var{Name: "codec_name", To: &s.Codec},
		jsonio.Var{Name: "width", To: &s.Width},
		jsonio.Var{Name: "height", To: &s.Height},
		jsonio.Var{Name: "pix_fmt", To: &s.Format},
		jsonio.Var{Name: "color_space", To: &s.Space},
		jsonio.Var{Name: "color_range", To: &s.Range},
		jsonio.Var{Name: "time_base", To: &s.TimeBase},
		jsonio.Var{Name: "disposition", To: func(v jsonio.Value) error {
			return v.Scan(jsonio.Var{Name: "attached_pic", To: &s.AttachedPicture})
		}},
		jsonio.Var{Name: "side_data_list", To: func(v jsonio.Value) (err error) {
			s.Matrices, err = jsonio.ScanList(v, func(v jsonio.Value, to *string) error {
				return v.Scan(jsonio.Var{Name: "displaymatrix", To: to})
			})
			return err
		}},
	)
}

// add counts a packet and its time.
func (s *span) add(p packet) error {
	if s.packets++; s.packets > MaxPackets {
		return tooLargeError("video of more than %d packets", MaxPackets)
	}
	at := p.PTS
	if at == nil {
		at = p.DTS
	}
	if at == nil || strings.Contains(p.Flags, "D") { // D: an edit list leaves it out
		return nil
	}
	if !s.hasTimes {
		s.hasTimes, s.first, s.last = true, *at, *at
	}
	s.first, s.last = min(s.first, *at), max(s.last, *at)
	return nil
}

// Check returns the film's description. It returns an error if the film exceeds a limit or has an unsupported format.
func (p Probe) Check(w api.Video) (f Film, err error) {
	s, all := p.first, p.all
	switch {
	case s == nil || s.AttachedPicture != 0 || !all.hasTimes:
		return f, corruptError("video without pictures")
	case !slices.Contains(codecs, s.Codec):
		return f, UnsupportedError("video coded as %.40q: send H.264, HEVC, VP8, VP9, AV1, MPEG-4, H.263, MJPEG or WMV", s.Codec)
	case s.Width < 1 || s.Height < 1:
		return f, corruptError("video with pictures of %d × %d", s.Width, s.Height)
	case s.Width > maxSide || s.Height > maxSide || s.Width*s.Height > maxPixels:
		return f, tooLargeError("video of %d × %d: at most %.1f megapixels, and %d pixels a side", s.Width, s.Height, maxPixels/1e6, maxSide)
	}
	f.Planes = raster.Planes{Width: s.Width, Height: s.Height, Matrix: matrices[s.Space], Rotation: orientation(s)}
	if !samples(&f.Planes, s.Format) {
		return f, UnsupportedError("video with samples of %.40q: send YCbCr with 8, 10 or 12 bits", s.Format)
	}
	f.Full = f.Full || s.Range == "pc" || s.Codec == "mjpeg" && s.Range != "tv" // FFmpeg reports no range for a grey JPEG
	if s.Codec == "vp8" {
		f.Matrix = raster.BT601 // RFC 6386 has no other matrix; a container may name another one
	}
	over, under, _ := strings.Cut(s.TimeBase, "/")
	unit, err1 := strconv.ParseInt(over, 10, 32)
	units, err2 := strconv.ParseInt(under, 10, 32)
	if err1 != nil || err2 != nil || min(unit, units) < 1 {
		return f, corruptError("video with times in units of %.40q s", s.TimeBase)
	}
	seconds := (float64(all.last) - float64(all.first)) * float64(unit) / float64(units)
	if seconds > maxLength.Seconds() {
		return f, tooLargeError("video of %.0f s: at most %.0f s", seconds, maxLength.Seconds())
	}
	f.Frames = 1 + int((all.last-all.first)*unit*1000/(units*int64(w.SampleMS)))
	return f, w.Check(f.Frames)
}

// DecodeArgs returns the arguments with which ffmpeg writes the planes of f's frames, one frame after the other. ffmpeg may write more
// frames: it shows the last frame for its whole duration, which may reach beyond the next sample.
func (f *Film) DecodeArgs(input string, w api.Video) []string {
	return []string{
		"-hide_banner", "-loglevel", "error", "-noautorotate", "-reinit_filter", "0", "-xerror", "-err_detect", "explode", "-threads", "1",
		"-protocol_whitelist", "file,pipe", "-format_whitelist", demuxers, "-i", input, "-map", "0:v:0", "-fps_mode", "passthrough",
		"-vf", fmt.Sprintf("setpts=PTS-STARTPTS,fps=1000/%d:round=up,scale=%d:%d:flags=bicubic+accurate_rnd+bitexact", w.SampleMS, f.Width, f.Height),
		"-f", "rawvideo", "pipe:1",
	}
}

// StreamArgs returns the arguments with which ffmpeg writes the planes of all pictures in a raw stream of a [raster.Run]'s format.
// Without nofind_stream_info, ffmpeg decodes the first picture twice.
func StreamArgs(input, format string) []string {
	return []string{
		"-hide_banner", "-loglevel", "error", "-xerror", "-err_detect", "explode", "-threads", "1", "-protocol_whitelist", "file,pipe",
		"-nofind_stream_info", "-f", format, "-i", input, "-map", "0:v:0", "-fps_mode", "passthrough", "-f", "rawvideo", "pipe:1",
	}
}

// orientation returns the EXIF orientation of a stream's display matrix, rounded to the next right angle.
func orientation(s *stream) int {
	for _, matrix := range s.Matrices {
		var m []int64
		for _, text := range strings.Fields(matrix) {
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
		if a*d < b*c {              // left and right are exchanged first
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
