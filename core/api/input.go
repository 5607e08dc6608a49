package api

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// input is one picture or video of a predict call, in its own memory.
type input struct {
	id         string
	video      bool
	url        string // as given, or the hosted address of base64; empty when neither came about
	crop       raster.Crop
	blob       blob.Hash // when it came as base64
	err        error     // why it is not to be analysed
	downloaded bool      // its url may come with what it gave
}

// readMedia decodes one element of inputs. What is wrong with it stands in its err, since
// the other inputs of the call go on; the error returned is trouble of our own.
func readMedia(x *call.Call, o call.Object, malformed error) (input, error) {
	var in input
	err := malformed
	if err == nil {
		err = in.decode(o)
	}
	if in.id == "" {
		var trouble error
		if in.id, trouble = x.NewID(); trouble != nil {
			return in, trouble
		}
	}
	if err == nil && in.url == "" {
		err = hostMedia(x, &in, o)
	}
	if err != nil && call.StatusOf(err).HTTP >= 500 {
		return in, err
	}
	in.err = err
	return in, nil
}

// decode reads everything but base64.
func (in *input) decode(o call.Object) error {
	var err error
	if in.id, err = o.ID("id"); err != nil {
		in.id = ""
		return err
	}
	media, err := in.media(o)
	if err != nil {
		return err
	}
	if in.video && media.Has("crop") {
		return call.Refusef(call.ErrInput, "%s: videos have no crop.", media.At("crop"))
	}
	_, err = in.address(media)
	return err
}

// media returns data.image or data.video, and notes which.
func (in *input) media(o call.Object) (call.Object, error) {
	data, err := o.Object("data")
	if err != nil {
		return call.Object{}, err
	}
	name := "image"
	if in.video = data.Has("video"); in.video {
		if name = "video"; data.Has("image") {
			return call.Object{}, call.Refusef(call.ErrInput, "%s: use either image or video, not both.", data.Path)
		}
	}
	return data.Object(name)
}

// address reads where the picture is and which part of it counts; inline: it is base64.
func (in *input) address(image call.Object) (inline bool, err error) {
	address, err := image.Text("url")
	if err != nil {
		return false, err
	}
	in.url = strings.TrimSpace(address)
	if in.crop, err = readCrop(image, "crop"); err != nil {
		return false, err
	}
	switch inline = isInline(image); {
	case in.url != "" && inline && !in.downloaded:
		return false, call.Refusef(call.ErrInput, "%s: use either url or base64, not both.", image.Path)
	case in.url != "":
		return inline, checkURL(image.At("url"), in.url)
	case !inline:
		return false, call.Refusef(call.ErrInput, "%s: url or base64 is required.", image.Path)
	}
	return true, nil
}

// isInline reports whether an image, or a video, comes as base64. Some clients send an empty string where they mean nothing.
func isInline(o call.Object) bool { return o.Has("base64") && string(o.Get("base64").Raw()) != `""` }

// hostMedia decodes the base64 of an input, checks that it is a picture or a video, keeps it for a while
// and gives it an address.
func hostMedia(x *call.Call, in *input, o call.Object) error {
	media, err := in.media(o)
	if err != nil {
		return err
	}
	if x.Scratch == nil {
		x.Borrow()
	}
	var contentType string
	read := decodeImage
	if in.video {
		read = decodeFilm
	}
	if x.Scratch, contentType, err = read(media, x.Scratch[:0]); err != nil {
		return err
	}
	if x.Host.Storage != nil {
		fits, err := x.Host.Storage.KeepPicture(x.App.Owner, int64(len(x.Scratch)), x.Host.KeepPredicted)
		if err != nil {
			return err
		}
		if !fits {
			return call.Refusef(auth.ErrQuota, "Storage limit: the pictures of predict calls exceed what the account may store; send URLs, or wait.")
		}
	}
	name, hash, err := x.Host.Hosted.Add(x.Ctx, x.Scratch, contentType, x.Now.Add(x.Host.KeepPredicted))
	if ended := x.Ctx.Err(); ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("%w: store picture: %w", call.ErrInternal, err)
	}
	in.blob = hash
	in.url = x.Host.PublicURL + call.HostedPath + name
	return nil
}

// decodeImage decodes the base64 of an image into buf's memory, and returns its content type.
func decodeImage(o call.Object, buf []byte) (picture []byte, contentType string, err error) {
	return decodePicture(buf, o.Get("base64"), o.At("base64"))
}

func decodePicture(buf []byte, text jsonio.Value, path string) (picture []byte, contentType string, err error) {
	if picture, err = decodeMedia(buf, text, path, call.MaxPictureBytes); err != nil {
		return picture, "", err
	}
	info, err := raster.Inspect(picture)
	return picture, "image/" + info.Format, err
}

// decodeFilm decodes the base64 of a video into buf's memory, and returns its content type.
func decodeFilm(o call.Object, buf []byte) (film []byte, contentType string, err error) {
	if film, err = decodeMedia(buf, o.Get("base64"), o.At("base64"), call.MaxVideoBytes); err != nil {
		return film, "", err
	}
	t, err := raster.InspectVideo(film)
	return film, t.MediaType, err
}

// decodeMedia decodes base64 of 1 to most bytes into buf's memory.
func decodeMedia(buf []byte, text jsonio.Value, path string, most int) ([]byte, error) {
	if len(text.Raw())/4*3 > most+4 {
		return buf, call.Refusef(raster.ErrTooLarge, "%s: must be at most %d bytes.", path, most)
	}
	data, err := text.Base64(buf)
	if err != nil {
		return buf, fmt.Errorf("%s: %w", path, err)
	}
	if len(data) == 0 {
		return data, call.Refusef(call.ErrInput, "%s is empty.", path)
	}
	return data, nil
}

// checkURL holds the address of a picture, which stands at path, to what may be one.
func checkURL(path, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(address) > call.MaxURLBytes {
		return call.Refusef(call.ErrURL, "%s: must be an http:// or https:// URL of at most %d bytes.", path, call.MaxURLBytes)
	}
	return nil
}

// readCrop reads [top, left, bottom, right]; absent and empty are all of the picture.
func readCrop(o call.Object, name string) (raster.Crop, error) {
	v := o.Get(name)
	if v.Kind() == jsonio.Absent || v.Kind() == jsonio.Array && v.Len() == 0 {
		return raster.Crop{}, nil
	}
	bad := call.Refusef(call.ErrInput, "%s: must be four numbers from 0 to 1: top, left, bottom, right, "+
		"with top above bottom and left before right.", o.At(name))
	edges := make([]float64, 0, 4)
	for e := range v.Elems() {
		f, err := e.Float()
		if err != nil || f < 0 || f > 1 || len(edges) == 4 {
			return raster.Crop{}, bad
		}
		edges = append(edges, f)
	}
	if len(edges) != 4 || edges[0] >= edges[2] || edges[1] >= edges[3] {
		return raster.Crop{}, bad
	}
	return raster.Crop{Top: edges[0], Left: edges[1], Bottom: edges[2], Right: edges[3]}, nil
}

// write writes the input as answers echo it: base64 by its hosted address.
func (in *input) write(w *jsonio.Writer) {
	w.Object()
	w.Name("id")
	w.String(in.id)
	w.Name("data")
	w.Object()
	if in.video {
		w.Name("video")
		w.Object()
		if in.url != "" {
			w.Name("url")
			w.String(in.url)
		}
		w.End('}')
	} else {
		writeImage(w, in.url, in.crop)
	}
	w.End('}')
	w.End('}')
}

// writeStatus writes the status of an input among others.
func (in *input) writeStatus(w *jsonio.Writer) {
	if in.err == nil {
		call.WriteStatus(w, call.StatusOk, "")
		return
	}
	s := call.StatusOf(in.err)
	details := call.DetailsOf(in.err, s)
	if in.video {
		s, details = s.OfVideo(details)
	}
	call.WriteStatus(w, s, details)
}
