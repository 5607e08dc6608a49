package show

import (
	"fmt"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Media is one picture or video of a predict call. It owns its memory.
type Media struct {
	ID         string
	Video      bool
	URL        string // as given, or the hosted URL of base64; empty if neither exists
	Crop       raster.Crop
	Blob       blob.Hash // of base64
	Err        error     // reason why it cannot be analysed
	Downloaded bool      // a url next to base64 is valid, since the client downloaded the picture
}

// ReadMedia decodes one element of inputs. It reports a fault of the element in Err, since the other inputs of the call continue; the
// returned error is internal.
func ReadMedia(x *call.Call, o call.Object, malformed error) (Media, error) {
	var in Media
	err := malformed
	if err == nil {
		err = in.decode(o)
	}
	if in.ID == "" {
		var trouble error
		if in.ID, trouble = x.NewID(); trouble != nil {
			return in, trouble
		}
	}
	if err == nil && in.URL == "" {
		err = hostMedia(x, &in, o)
	}
	if err != nil && call.StatusOf(err).HTTP >= 500 {
		return in, err
	}
	in.Err = err
	return in, nil
}

// decode reads everything except base64.
func (in *Media) decode(o call.Object) error {
	var err error
	if in.ID, err = o.ID("id"); err != nil {
		in.ID = ""
		return err
	}
	media, err := in.media(o)
	if err != nil {
		return err
	}
	if in.Video && media.Has("crop") {
		return call.Refusef(call.ErrInput, "%s: videos have no crop.", media.MemberPath("crop"))
	}
	_, err = in.ReadAddress(media)
	return err
}

// media returns data.image or data.video, and sets in.Video.
func (in *Media) media(o call.Object) (call.Object, error) {
	data, err := o.Object("data")
	if err != nil {
		return call.Object{}, err
	}
	name := "image"
	if in.Video = data.Has("video"); in.Video {
		if name = "video"; data.Has("image") {
			return call.Object{}, call.Refusef(call.ErrInput, "%s: use either image or video, not both.", data.Path)
		}
	}
	return data.Object(name)
}

// ReadAddress reads the URL and the crop. inline reports whether the picture comes as base64.
func (in *Media) ReadAddress(image call.Object) (inline bool, err error) {
	address, err := image.Text("url")
	if err != nil {
		return false, err
	}
	in.URL = strings.TrimSpace(address)
	if in.Crop, err = ReadCrop(image, "crop"); err != nil {
		return false, err
	}
	switch inline = IsInline(image); {
	case in.URL != "" && inline && !in.Downloaded:
		return false, call.Refusef(call.ErrInput, "%s: use either url or base64, not both.", image.Path)
	case in.URL != "":
		return inline, CheckURL(image.MemberPath("url"), in.URL)
	case !inline:
		return false, call.Refusef(call.ErrInput, "%s: url or base64 is required.", image.Path)
	}
	return true, nil
}

// IsInline reports whether an image or a video comes as base64. Some clients send an empty string for a missing value.
func IsInline(o call.Object) bool { return o.Has("base64") && string(o.Get("base64").Raw()) != `""` }

// hostMedia decodes the base64 of an input, checks that it is a picture or a video, stores it for a limited time
// and gives it a hosted URL.
func hostMedia(x *call.Call, in *Media, o call.Object) error {
	media, err := in.media(o)
	if err != nil {
		return err
	}
	if x.Scratch == nil {
		x.BorrowBuffer()
	}
	var contentType string
	read := DecodeImage
	if in.Video {
		read = decodeFilm
	}
	if x.Scratch, contentType, err = read(media, x.Scratch[:0]); err != nil {
		return err
	}
	if x.Host.Storage != nil {
		fits, err := x.Host.Storage.CountPicture(x.App.Owner, int64(len(x.Scratch)), x.Host.PredictedTTL)
		if err != nil {
			return err
		}
		if !fits {
			return call.Refusef(auth.ErrQuota, "Storage limit: the pictures of predict calls exceed what the account may store; send URLs, or wait.")
		}
	}
	name, hash, err := x.Host.Hosted.Add(x.Ctx, x.App.AppID(), x.Scratch, contentType, x.Now.Add(x.Host.PredictedTTL))
	if ended := x.Ctx.Err(); ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("%w: store picture: %w", call.ErrInternal, err)
	}
	in.Blob = hash
	in.URL = x.Host.PublicURL + call.HostedPath + name
	return nil
}

// DecodeImage decodes the base64 of an image into buf's memory, and returns its content type.
func DecodeImage(o call.Object, buf []byte) (picture []byte, contentType string, err error) {
	return DecodePicture(buf, o.Get("base64"), o.MemberPath("base64"))
}

// DecodePicture decodes the base64 of a picture into the memory of buf. path is the place of text in the request, for errors.
func DecodePicture(buf []byte, text jsonio.Value, path string) (picture []byte, contentType string, err error) {
	if picture, err = decodeMedia(buf, text, path, call.MaxPictureBytes, "image/"); err != nil {
		return picture, "", err
	}
	if limit := raster.SizeLimit(picture); int64(len(picture)) > limit {
		return picture, "", call.Refusef(raster.ErrTooLarge, "%s: must be at most %d bytes.", path, limit)
	}
	t, err := raster.InspectPicture(picture)
	return picture, t.MediaType, err
}

// decodeFilm decodes the base64 of a video into buf's memory, and returns its content type.
func decodeFilm(o call.Object, buf []byte) (film []byte, contentType string, err error) {
	if film, err = decodeMedia(buf, o.Get("base64"), o.MemberPath("base64"), call.MaxVideoBytes, "video/", "image/"); err != nil {
		return film, "", err
	}
	t, err := raster.InspectVideo(film)
	return film, t.MediaType, err
}

// decodeMedia decodes base64 of 1 to limit bytes into buf's memory. A data URL of one of the types counts as its base64: browsers return
// one for a canvas or a file.
func decodeMedia(buf []byte, text jsonio.Value, path string, limit int, types ...string) ([]byte, error) {
	if len(text.Raw())/4*3 > limit+4 {
		return buf, call.Refusef(raster.ErrTooLarge, "%s: must be at most %d bytes.", path, limit)
	}
	data, err := text.Base64(buf, types...)
	if err != nil {
		return buf, fmt.Errorf("%s: %w", path, err)
	}
	if len(data) == 0 {
		return data, call.Refusef(call.ErrInput, "%s is empty.", path)
	}
	return data, nil
}

// CheckURL checks the URL of a picture. path is its place in the request, for errors.
func CheckURL(path, address string) error {
	if !form.IsURL(address) {
		return call.Refusef(call.ErrURL, "%s: must be an http:// or https:// URL of at most %d bytes.", path, call.MaxURLBytes)
	}
	return nil
}

// ReadCrop reads [top, left, bottom, right]. An absent or empty crop means the whole picture.
func ReadCrop(o call.Object, name string) (raster.Crop, error) {
	v := o.Get(name)
	if v.Kind() == jsonio.Absent || v.Kind() == jsonio.Array && v.Len() == 0 {
		return raster.Crop{}, nil
	}
	bad := call.Refusef(call.ErrInput, "%s: must be four numbers from 0 to 1: top, left, bottom, right, "+
		"with top above bottom and left before right.", o.MemberPath(name))
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

// Write writes the input as answers echo it. A picture sent as base64 has its hosted URL.
func (in *Media) Write(w *jsonio.Writer) {
	w.Object()
	w.Text("id", in.ID)
	w.ObjectMember("data")
	if in.Video {
		w.ObjectMember("video")
		WriteText(w, "url", in.URL)
		w.End('}')
	} else {
		WriteImage(w, in.URL, in.Crop)
	}
	w.End('}')
	w.End('}')
}

// WriteStatus writes the status of one input of a call.
func (in *Media) WriteStatus(w *jsonio.Writer) {
	if in.Err == nil {
		call.WriteStatus(w, call.StatusOk, "")
		return
	}
	s := call.StatusOf(in.Err)
	details := call.DetailsOf(in.Err, s)
	if in.Video {
		s, details = s.OfVideo(details)
	}
	call.WriteStatus(w, s, details)
}

// ReadAllMedia reads the inputs of a call, 1 to limit. It returns a job for each input without an error. Videos have a frame each sampleMS.
func ReadAllMedia(x *call.Call, limit int, want predict.Want, sampleMS int) ([]Media, []call.Job, error) {
	elements, n, err := x.Body.LimitedObjects("inputs", limit, call.ErrPredict)
	if err != nil {
		return nil, nil, err
	}
	inputs := make([]Media, 0, n)
	var jobs []call.Job
	videos := 0
	for o, malformed := range elements {
		in, err := ReadMedia(x, o, malformed)
		if err != nil {
			return nil, nil, err
		}
		if in.Video {
			if videos++; videos > call.MaxVideos {
				return nil, nil, call.Refusef(call.ErrPredict, "Send at most %d videos in one call.", call.MaxVideos)
			}
			if in.Err == nil && (sampleMS < call.MinSampleMS || sampleMS > call.MaxSampleMS) {
				in.Err = call.Refusef(call.ErrInput, "sample_ms: must be %d to %d, not %d.", call.MinSampleMS, call.MaxSampleMS, sampleMS)
			}
		}
		inputs = append(inputs, in)
		if in.Err == nil {
			job := call.Job{Blob: in.Blob, Crop: in.Crop, Want: want}
			if in.Video {
				job.Video.SampleMS = sampleMS
			}
			if in.Blob.IsZero() {
				job.URL = in.URL
			}
			jobs = append(jobs, job)
		}
	}
	for i := range jobs {
		if jobs[i].Video.SampleMS > 0 {
			jobs[i].Video.MaxFrames = call.MaxFrames / videos
		}
	}
	return inputs, jobs, nil
}

// MatchResults assigns results to the inputs that have no error, in order. For a failed result it sets
// the input's Err, and seen has nil. good is the number of other results. The returned error
// ends the call, for example if an analysis lacks data that a model needs.
func MatchResults(x *call.Call, inputs []Media, results []call.Result, models []Predictor) (seen []*call.Result, good int, err error) {
	seen = make([]*call.Result, len(inputs))
	for i := range inputs {
		if inputs[i].Err != nil {
			continue
		}
		if len(results) == 0 {
			return nil, 0, call.ErrNoResult
		}
		r := &results[0]
		results = results[1:]
		if r.Err != nil && call.StatusOf(r.Err).HTTP >= 500 {
			return nil, 0, r.Err
		}
		for j := range models {
			if r.Err == nil && !models[j].completes(r, inputs[i].Video) {
				return nil, 0, call.ErrNoResult
			}
		}
		if inputs[i].Err = r.Err; r.Err == nil {
			seen[i] = r
			good++
		}
	}
	return seen, good, nil
}
