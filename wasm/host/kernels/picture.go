package kernels

import (
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

const refused = -2 // result of decode for an error, which is in info

const (
	viewBytes = 112
	textBytes = 1024 // size of the text in info
)

// decode(src, len, view, dst, cap, info) → i64
func (in *Instance) decode(s []uint64) {
	src, dst := in.bytes(s[0], count(s[1])), in.bytes(s[3], count(s[4]))
	info, text := view[int32](in, s[5], 4), in.bytes(uint64(uint32(s[5]))+16, textBytes)
	v, limits := in.readView(s[2])
	if in.decoder == nil || !sameLimits(&in.limits, &limits) {
		in.limits = limits
		limits.Expired = in.isExpired
		in.decoder = raster.NewDecoder(limits)
	}
	img, err := in.decoder.Decode(src, v)
	if err == nil {
		if len(img.Pix) > len(dst) {
			wild()
		}
		info[0], info[1] = int32(img.Width), int32(img.Height)
		s[0] = uint64(copy(dst, img.Pix))
		return
	}
	info[2] = int32(raster.ErrorNumber(err))
	info[3] = int32(copy(text, err.Error()))
	n := int64(refused)
	s[0] = uint64(n)
}

// inspect(src, len, info) → i32
func (in *Instance) inspect(s []uint64) {
	src, v := in.bytes(s[0], count(s[1])), view[int32](in, s[2], 4)
	s[0] = 0
	if info, err := raster.Inspect(src); err == nil {
		v[0], v[1], v[2], v[3] = int32(info.Width), int32(info.Height), int32(info.Orientation), int32(info.Frames)
		s[0] = uint64(raster.FormatNumber(info.Format))
	}
}

// isExpired reports whether the context of the guest's call is done.
func (in *Instance) isExpired() bool { return in.ctx.Err() != nil }

// readView reads a raster.View and Limits. It lowers limits that exceed those of the host's Options.
func (in *Instance) readView(at uint64) (v raster.View, l raster.Limits) {
	edges, sizes, words := view[float64](in, at, 4), view[int64](in, at+32, 6), view[int32](in, at+80, 8)
	v.Crop = raster.Crop{Top: edges[0], Left: edges[1], Bottom: edges[2], Right: edges[3]}
	v.Centre, v.Box, v.Detail = int(words[0]), words[1]&1 != 0, int(words[1]>>1)
	v.Width, v.Height, v.MaxSide = int(words[2]), int(words[3]), int(words[4])
	o := &in.native.o.Limits
	l = raster.Limits{
		Bytes: minLimit(sizes[0], o.Bytes), Pixels: minLimit(sizes[1], o.Pixels),
		BaselinePixels: minLimit(sizes[2], o.BaselinePixels), ProgressivePixels: minLimit(sizes[3], o.ProgressivePixels),
		TightPixels: minLimit(sizes[4], o.TightPixels), ScanBlocks: minLimit(sizes[5], o.ScanBlocks),
		RawBytes: o.RawBytes, // the guest does not limit it
		Side:     int(minLimit(int64(words[5]), int64(o.Side))), Scans: int(minLimit(int64(words[6]), int64(o.Scans))),
		Frames: int(minLimit(int64(words[7]), int64(o.Frames))),
	}
	return v, l
}

// minLimit returns the smaller of the guest's limit and ours. If the guest's limit is not above 0, it ends the instance.
func minLimit(guest, ours int64) int64 {
	if guest <= 0 {
		wild()
	}
	return min(guest, ours)
}

func sameLimits(a, b *raster.Limits) bool {
	return a.Bytes == b.Bytes && a.Pixels == b.Pixels && a.BaselinePixels == b.BaselinePixels && a.ProgressivePixels == b.ProgressivePixels &&
		a.TightPixels == b.TightPixels && a.ScanBlocks == b.ScanBlocks && a.Side == b.Side && a.Scans == b.Scans && a.Frames == b.Frames
}

// addRows(sums, pix, stride, w, taps, n)
func (in *Instance) addRows(s []uint64) {
	stride, taps, n := count(s[2]), count(s[4]), count(s[5])
	if taps == 0 || n == 0 {
		return
	}
	in.work(taps, n, 1)
	raster.AddRows(view[uint32](in, s[0], n), in.bytes(s[1], extent(taps, stride, n)), stride, view[uint32](in, s[3], taps))
}

// across(out, sums, first, w, taps, n, half, m)
func (in *Instance) across(s []uint64) {
	taps, n := count(s[4]), count(s[5])
	if taps == 0 {
		wild()
	}
	w, first := view[uint32](in, s[3], times(n, taps)), view[int32](in, s[2], n)
	reach := 0
	for _, f := range first {
		reach = max(reach, count(uint64(uint32(f)))+taps)
	}
	if overlap(s[0], n, s[2], 4*n) { // writing out would change the indices
		wild()
	}
	raster.ResampleRow(in.bytes(s[0], n), view[uint32](in, s[1], reach), first, w, taps, s[6], s[7])
}

// ycbcr(dst, y, cb, cr, n)
func (in *Instance) ycbcr(s []uint64) {
	n := count(s[4])
	raster.YCbCrToRGB(in.bytes(s[0], times(n, 3)), in.bytes(s[1], n), in.bytes(s[2], n), in.bytes(s[3], n))
}

// block returns the arguments of inverse8 and inverse4. dst has side rows of side bytes, and b and quant have the coefficients and their
// quantisers.
func (in *Instance) block(s []uint64, side int) (dst []byte, stride int, b, quant *[64]int32) {
	stride = count(s[1])
	return in.bytes(s[0], extent(side, stride, side)), stride, (*[64]int32)(view[int32](in, s[2], 64)), (*[64]int32)(view[int32](in, s[3], 64))
}

// inverse8(dst, stride, b, quant)
func (in *Instance) inverse8(s []uint64) { jpg.InverseDCT8(in.block(s, 8)) }

// inverse4(dst, stride, b, quant)
func (in *Instance) inverse4(s []uint64) { jpg.InverseDCT4(in.block(s, 4)) }
