package film

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// every returns options for one frame every ms milliseconds.
func every(ms int) api.Video { return api.Video{SampleMS: ms, MaxFrames: 600} }

// status returns the status code of a video item with an error.
func status(err error) string {
	for kind, status := range map[error]string{nil: "10000", raster.ErrUnsupported: "31101", raster.ErrTooLarge: "31105", raster.ErrCorrupt: "31300"} {
		if err == kind || kind != nil && errors.Is(err, kind) {
			return status
		}
	}
	return err.Error()
}

// TestLimits checks answers of ffprobe at and beyond the limits.
func TestLimits(t *testing.T) {
	const good = `{"codec_name": "h264", "width": 4, "height": 2, "pix_fmt": "yuv420p", "time_base": "1/10"}`
	packets := func(times ...any) string {
		var all []string
		for _, at := range times {
			all = append(all, fmt.Sprintf(`{"pts": %v}`, at))
		}
		return strings.Join(all, ",")
	}
	with := func(name, value string) string {
		before, rest, _ := strings.Cut(good, `"`+name+`": `)
		after := rest[strings.IndexAny(rest, ",}"):]
		return before + `"` + name + `": ` + value + after
	}
	tests := map[string]struct {
		packets, stream string
		frames          int
		status, text    string
	}{
		"one packet":             {packets: packets(7), stream: good, frames: 1},
		"one second":             {packets: packets(-3, 7), stream: good, frames: 2},
		"just below a second":    {packets: packets(9, 0), stream: good, frames: 1},
		"ten minutes":            {packets: packets(0, 5999), stream: good, frames: 600},
		"601 frames":             {packets: packets(0, 6000), stream: good, status: "31105", text: "601 frames: at most 600, take a larger sample_ms"},
		"longer":                 {packets: packets(0, 6001), stream: good, status: "31105", text: "video of 600 s: at most 600 s"},
		"longest":                {packets: packets("-9223372036854775808", "9223372036854775807"), stream: good, status: "31105", text: "video of 1844674407370955264 s: at most 600 s"},
		"time of no number":      {packets: packets(`"x"`), stream: good, status: "31300"},
		"time beyond 64 bits":    {packets: packets("9223372036854775808"), stream: good, status: "31300"},
		"without times":          {packets: `{}`, stream: good, status: "31300", text: "video without pictures"},
		"decoding times":         {packets: `{"dts": 0}, {"dts": 30}`, stream: good, frames: 4},
		"left out":               {packets: `{"pts": -50, "flags": "KD"}, {"pts": 0, "flags": "_"}, {"pts": 10, "flags": "_"}, {"pts": 60, "flags": "_D"}`, stream: good, frames: 2},
		"without a stream":       {packets: packets(0), status: "31300", text: "video without pictures"},
		"picture of a sound":     {packets: packets(0), stream: `{"codec_name": "mjpeg", "disposition": {"attached_pic": 1}}`, status: "31300", text: "video without pictures"},
		"another codec":          {packets: packets(0), stream: with("codec_name", `"theora"`), status: "31101", text: `video coded as "theora": send H.264, HEVC, VP8, VP9, AV1, MPEG-4, H.263, MJPEG or WMV`},
		"samples of RGB":         {packets: packets(0), stream: with("pix_fmt", `"gbrp"`), status: "31101", text: `video with samples of "gbrp": send YCbCr with 8, 10 or 12 bits`},
		"semi-planar":            {packets: packets(0), stream: with("pix_fmt", `"nv12"`), status: "31101"},
		"big-endian":             {packets: packets(0), stream: with("pix_fmt", `"yuv420p10be"`), status: "31101"},
		"alpha":                  {packets: packets(0), stream: with("pix_fmt", `"yuva420p"`), status: "31101"},
		"9 bits":                 {packets: packets(0), stream: with("pix_fmt", `"yuv420p9le"`), status: "31101"},
		"no samples":             {packets: packets(0), stream: with("pix_fmt", `"yuvp"`), status: "31101"},
		"no width":               {packets: packets(0), stream: with("width", "0"), status: "31300", text: "video with pictures of 0 × 2"},
		"negative height":        {packets: packets(0), stream: with("height", "-2"), status: "31300"},
		"width of no integer":    {packets: packets(0), stream: with("width", "1e30"), status: "31300"},
		"widest":                 {packets: packets(0), stream: with("width", "8192"), frames: 1},
		"wider":                  {packets: packets(0), stream: with("width", "8193"), status: "31105", text: "video of 8193 × 2: at most 8.9 megapixels, and 8192 pixels a side"},
		"no time base":           {packets: packets(0), stream: with("time_base", `"1/0"`), status: "31300", text: `video with times in units of "1/0" s`},
		"time base of two words": {packets: packets(0), stream: with("time_base", `"1 s"`), status: "31300"},
		"large time base":        {packets: packets(0), stream: with("time_base", `"1/2147483648"`), status: "31300"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := ReadProbe(strings.NewReader(`{"packets": [` + tt.packets + `], "programs": [{}], "streams": [` + tt.stream + `]}`))
			var f Film
			if err != nil {
				err = corruptError("%v", err)
			} else {
				f, err = p.Check(every(1000))
			}
			if tt.status == "" {
				tt.status = "10000"
			}
			if got := status(err); got != tt.status || f.Frames != tt.frames && err == nil || tt.text != "" && err.Error() != tt.text {
				t.Errorf("%d frames, status %s: %v; want %d, %s: %s", f.Frames, got, err, tt.frames, tt.status, tt.text)
			}
		})
	}
}

// TestPlanes checks sample formats, colours and rotation.
func TestPlanes(t *testing.T) {
	for _, tt := range []struct {
		stream stream
		want   raster.Planes
		size   int
	}{
		{stream{Format: "yuv420p"}, raster.Planes{SubX: 1, SubY: 1, Depth: 8, Rotation: 1}, 5*3 + 2*3*2},
		{stream{Format: "yuvj422p"}, raster.Planes{SubX: 1, Depth: 8, Full: true, Rotation: 1}, 5*3 + 2*3*3},
		{stream{Format: "yuv444p12le", Space: "bt2020nc"}, raster.Planes{Depth: 12, Matrix: raster.BT2020, Rotation: 1}, 2 * 3 * 5 * 3},
		{stream{Format: "yuv440p10le", Space: "smpte170m", Range: "pc"}, raster.Planes{SubY: 1, Depth: 10, Matrix: raster.BT601, Full: true, Rotation: 1}, 2 * (5*3 + 2*5*2)},
		{stream{Format: "yuv411p", Space: "bt709", Range: "tv"}, raster.Planes{SubX: 2, Depth: 8, Matrix: raster.BT709, Rotation: 1}, 5*3 + 2*2*3},
		{stream{Format: "yuv410p", Space: "smpte240m"}, raster.Planes{SubX: 2, SubY: 2, Depth: 8, Rotation: 1}, 5*3 + 2*2*1},
		{stream{Format: "gray10le"}, raster.Planes{SubX: raster.NoChroma, SubY: raster.NoChroma, Depth: 10, Rotation: 1}, 2 * 5 * 3},
		{stream{Codec: "mjpeg", Format: "gray"}, raster.Planes{SubX: raster.NoChroma, SubY: raster.NoChroma, Depth: 8, Full: true, Rotation: 1}, 5 * 3},
		{stream{Codec: "vp8", Format: "yuv420p", Space: "bt709"}, raster.Planes{SubX: 1, SubY: 1, Depth: 8, Matrix: raster.BT601, Rotation: 1}, 5*3 + 2*3*2},
	} {
		s := tt.stream
		s.Width, s.Height, s.TimeBase = 5, 3, "1/1"
		if s.Codec == "" {
			s.Codec = "h264"
		}
		f, err := Probe{&s, span{hasTimes: true}}.Check(every(1000))
		if tt.want.Width, tt.want.Height = 5, 3; err != nil || fmt.Sprint(f.Planes) != fmt.Sprint(tt.want) || sizeOf(t, &f) != tt.size {
			t.Errorf("%+v: %+v of %d bytes, %v; want %+v of %d", tt.stream, f.Planes, sizeOf(t, &f), err, tt.want, tt.size)
		}
	}
}

// TestOrientation checks display matrices: each orientation of a picture, other angles, other scales, and damaged or missing matrices.
func TestOrientation(t *testing.T) {
	matrix := func(a, b, c, d int64) string { // in the format of ffprobe
		return fmt.Sprintf("\n00000000: %11d %11d %11d\n00000001: %11d %11d %11d\n00000002: %11d %11d %11d\n", a, b, 0, c, d, 0, 0, 0, 1<<30)
	}
	const one = 1 << 16
	for _, tt := range []struct {
		matrix string
		want   int
	}{
		{matrix(one, 0, 0, one), 1},
		{matrix(-one, 0, 0, one), 2},
		{matrix(-one, 0, 0, -one), 3},
		{matrix(one, 0, 0, -one), 4},
		{matrix(0, one, one, 0), 5},
		{matrix(0, one, -one, 0), 6},
		{matrix(0, -one, -one, 0), 7},
		{matrix(0, -one, one, 0), 8},
		{matrix(1144, 65526, -65526, 1144), 6},
		{matrix(1144, -65526, -65526, -1144), 7}, // rotated by 89°
		{matrix(0, -2*one, one, 0), 8},
		{matrix(0, 0, 0, 0), 1},
		{matrix(math.MinInt32, 0, 0, math.MinInt32), 3},
		{matrix(1<<31, 0, 0, one), 1},
		{"", 1},
		{"1 2 3", 1},
		{"-1 0 0 0 -1 0 0 0 1 0", 1},
		{"x", 1},
	} {
		s := stream{Matrices: make([]string, 2)}
		if s.Matrices[1] = tt.matrix; orientation(&s) != tt.want {
			t.Errorf("%s: orientation %d, want %d", tt.matrix, orientation(&s), tt.want)
		}
	}
}

// FuzzProbe parses random answers of ffprobe. An accepted film is within the limits.
func FuzzProbe(f *testing.F) {
	f.Add([]byte(`{"packets": [{"pts": 0}, {"pts": 20}], "streams": [{"codec_name": "h264", "width": 4, "height": 2, "pix_fmt": "yuv420p", "time_base": "1/10"}]}`))
	f.Add([]byte(`{"streams": [{"width": 1, "height": 1, "side_data_list": [{"displaymatrix": "\\n00000000:  0  65536  0\\n00000001:  -65536  0  0\\n00000002:  0  0  1073741824\\n"}]}], "packets": [{"dts": 1}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		p, err := ReadProbe(strings.NewReader(string(answer)))
		if err != nil {
			return
		}
		film, err := p.Check(every(100))
		if err == nil && (film.Frames < 1 || film.Frames > 600 || sizeOf(t, &film) < 1 || sizeOf(t, &film) > 6*maxPixels) {
			t.Errorf("%d frames of %d bytes", film.Frames, sizeOf(t, &film))
		}
		if got := status(err); len(got) != 5 {
			t.Errorf("status %s", got)
		}
	})
}

// sizeOf returns the number of bytes in a frame of a film.
func sizeOf(t testing.TB, f *Film) int {
	t.Helper()
	n, err := f.Size()
	if err != nil {
		t.Error(err)
	}
	return n
}
