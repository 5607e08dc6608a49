package film

import (
	"strings"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// matrices has the supported colour matrices by FFmpeg's names.
var matrices = map[string]raster.Matrix{
	"bt709": raster.BT709, "smpte170m": raster.BT601, "bt470bg": raster.BT601, "bt2020nc": raster.BT2020, "bt2020c": raster.BT2020,
}

// subsamplings has the layouts of chroma that FFmpeg names in its sample formats.
var subsamplings = map[string][2]int{"420": {1, 1}, "422": {1, 0}, "444": {0, 0}, "440": {0, 1}, "411": {2, 0}, "410": {2, 2}}

// samples reads FFmpeg's name of a sample format, such as yuv420p10le, into p. It reports whether the format is one that
// raster.Planes can have.
func samples(p *raster.Planes, format string) bool {
	p.Depth = 8
	for suffix, depth := range map[string]int{"10le": 10, "12le": 12} {
		if rest, deep := strings.CutSuffix(format, suffix); deep {
			format, p.Depth = rest, depth
		}
	}
	if format == "gray" {
		p.SubX, p.SubY = raster.NoChroma, raster.NoChroma
		return true
	}
	layout, full := strings.CutPrefix(format, "yuvj")
	if p.Full = full; !full {
		layout, _ = strings.CutPrefix(format, "yuv")
	}
	layout, planar := strings.CutSuffix(layout, "p")
	sub, known := subsamplings[layout]
	p.SubX, p.SubY = sub[0], sub[1]
	return known && planar && strings.HasPrefix(format, "yuv")
}
