//go:build wasip1 && lent

package raster

import (
	"errors"
	"structs"
)

// wasm/README.md describes the import.
//
//go:wasmimport kernel decode
//go:noescape
func hostDecode(src *byte, n int32, v *viewArgs, dst *byte, room int32, info *infoArgs) int64

// viewArgs is the memory layout of a View and the Limits that the host reads.
type viewArgs struct {
	_                                                   structs.HostLayout
	top, left, bottom, right                            float64
	bytes, pixels, baseline, progressive, tight, blocks int64
	centre, filter, width, height, maxSide              int32 // filter: 1 if Box, plus 2·Detail
	side, scans, frames                                 int32
}

// infoArgs is the memory layout of the result that the host writes: the picture's size, or the error and its class.
type infoArgs struct {
	_             structs.HostLayout
	width, height int32
	class, length int32
	text          [1024]byte
}

// The negative results of hostDecode.
const (
	hostDecodesNothing = -1 // the host does not decode
	hostRefuses        = -2 // decoding failed: infoArgs has the error
)

// hostError is an error of the host that wraps an error of this package.
type hostError struct {
	text  string
	class error // an element of classes
}

func (e *hostError) Error() string { return e.text }

func (e *hostError) Unwrap() error { return e.class }

// viewsAtHost asks the host to decode each view. done is false if the host does not decode. It is also
// false if the picture is empty, a side or the detail in a view is invalid or the limits have expired: then the guest returns the error itself.
func (d *Decoder) viewsAtHost(picture []byte, views []View, use func(i int, img Image)) (done bool, err error) {
	for i := range views {
		if views[i].maxBytes() == 0 {
			return false, nil
		}
	}
	for i := range views {
		img, done, err := d.decodeAtHost(picture, &views[i])
		switch {
		case !done && i == 0:
			return false, nil
		case !done: // the host decoded the first view
			return true, ErrExpired
		case err != nil:
			return true, err
		}
		use(i, img)
	}
	return true, nil
}

// decodeAtHost asks the host to decode one view, whose sides are valid.
func (d *Decoder) decodeAtHost(picture []byte, v *View) (img Image, done bool, err error) {
	if len(picture) == 0 || d.limits.Expired() {
		return Image{}, false, nil
	}
	room := v.maxBytes()
	d.pix = resize(d.pix, room)
	args, info := v.args(&d.limits), infoArgs{}
	switch n := hostDecode(&picture[0], int32(len(picture)), &args, &d.pix[0], int32(room), &info); n {
	case hostDecodesNothing:
		return Image{}, false, nil
	case hostRefuses:
		return Image{}, true, info.error()
	default:
		return Image{Width: int(info.width), Height: int(info.height), Pix: d.pix[:n]}, true, nil
	}
}

// maxBytes returns the maximum number of bytes of the result, or 0 if a side or the detail in v is invalid.
func (v *View) maxBytes() int {
	w, h := v.Width, v.Height
	if w == 0 && h == 0 {
		w, h = v.MaxSide, v.MaxSide
	}
	if min(w, h) < 1 || max(w, h, v.Detail) > MaxResultSide || v.Detail < 0 {
		return 0
	}
	return 3 * w * h
}

func (v *View) args(l *Limits) viewArgs {
	a := viewArgs{
		top: v.Crop.Top, left: v.Crop.Left, bottom: v.Crop.Bottom, right: v.Crop.Right,
		bytes: l.Bytes, pixels: l.Pixels, baseline: l.BaselinePixels, progressive: l.ProgressivePixels, tight: l.TightPixels, blocks: l.ScanBlocks,
		centre: int32(v.Centre), filter: 2 * int32(v.Detail), width: int32(v.Width), height: int32(v.Height), maxSide: int32(v.MaxSide),
		side: int32(l.Side), scans: int32(l.Scans), frames: int32(l.Frames),
	}
	if v.Box {
		a.filter++
	}
	return a
}

// error returns the host's error. It wraps the error of this package that its class names. An error about v is errView or errCrop. Any
// other error has only the text.
func (i *infoArgs) error() error {
	text := string(i.text[:min(max(i.length, 0), int32(len(i.text)))])
	if i.class >= 1 && int(i.class) <= len(classes) {
		return &hostError{text, classes[i.class-1]}
	}
	for _, err := range [...]error{errView, errCrop} {
		if text == err.Error() {
			return err
		}
	}
	return errors.New(text)
}

// wasm/README.md describes the import.
//
//go:wasmimport kernel inspect
//go:noescape
func hostInspect(src *byte, n int32, info *[4]int32) int32

// inspectAtHost asks the host to read a picture's headers. It returns false if the host does not inspect or the
// picture is invalid: then the guest inspects the picture and returns the error.
func inspectAtHost(picture []byte) (Info, bool) {
	if len(picture) == 0 {
		return Info{}, false
	}
	var v [4]int32
	f := hostInspect(&picture[0], int32(len(picture)), &v)
	if f <= 0 || int(f) >= len(formatNames) {
		return Info{}, false
	}
	return Info{Format: formatNames[f], Width: int(v[0]), Height: int(v[1]), Orientation: int(v[2]), Frames: int(v[3])}, true
}
