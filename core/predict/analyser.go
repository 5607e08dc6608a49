package predict

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

// Analyser analyses pictures on one thread and holds the memory for it: a decoder, a recogniser, an encoder and scratch. It is not safe for
// concurrent use. A program makes one Analyser for each thread from the same Set and reuses it. An analysis allocates its results, and the
// decoder allocates what the library of the picture's format needs. After the largest picture, no other allocation grows with the pixels.
type Analyser struct {
	set        *Set
	decoder    *raster.Decoder
	recogniser *Recogniser
	tallies    []tally
	encoder    jpg.Encoder
	file       []byte // buffer for a JPEG
}

// NewAnalyser returns an analyser whose decoder has the limits l. The network calls l.Pause between its steps and waits until it returns.
// NewAnalyser panics if the set comes from [LoadTables].
func (s *Set) NewAnalyser(l raster.Limits) *Analyser {
	if s.backbone == nil {
		panic("predict: NewAnalyser needs a set that was loaded with its network")
	}
	a := &Analyser{set: s, decoder: raster.NewDecoder(l), recogniser: s.NewRecogniser()}
	if session := a.recogniser.session; session != nil {
		session.Pause = l.Pause
	}
	if s.palette != nil {
		a.tallies = make([]tally, len(s.palette.colors))
	}
	return a
}

// Analyse computes the parts w of the analysis of an encoded picture. c selects an area of the upright picture. The concepts and the cells
// depend on the centred square of that area; the colours, the thumbnail and the picture on all of it.
//
// Errors: raster.ErrUnsupported, ErrTooLarge, ErrCorrupt and ErrExpired for a bad picture, and ErrNetwork. Analyse borrows picture until
// it returns.
func (a *Analyser) Analyse(picture []byte, c raster.Crop, w Want) (Analysis, error) {
	out, err := a.analyse(w, c, func(views []raster.View, use func(int, raster.Image)) error {
		return a.decoder.Views(picture, views, use)
	}, func(v raster.View) (raster.Crop, error) {
		return a.decoder.Part(picture, v)
	})
	if err == nil && w&WantExif != 0 {
		out.Exif = exif.Read(picture)
		out.Has |= WantExif
	}
	return out, err
}

// AnalysePlanes does what Analyse does for a video's frame, or for a picture that another decoder decoded. AnalysePlanes borrows p.Pix until it
// returns.
func (a *Analyser) AnalysePlanes(p raster.Planes, c raster.Crop, w Want) (Analysis, error) {
	out, err := a.analyse(w, c, oneByOne(func(v raster.View) (raster.Image, error) {
		return a.decoder.Planes(p, v)
	}), func(v raster.View) (raster.Crop, error) {
		return a.decoder.PartOf(p, v)
	})
	if err == nil && w&WantExif != 0 {
		out.Exif = p.Exif
		out.Has |= WantExif
	}
	return out, err
}

// AnalyseFrame does what Analyse does for the picture at the time of f's last Next, without a crop. It returns an error if w has WantCells. f's
// decoder renders the picture, so that another analyser may analyse the next picture of f.
func (a *Analyser) AnalyseFrame(f *raster.Frames, w Want) (Analysis, error) {
	return a.analyse(w, raster.Crop{}, oneByOne(f.Image), nil)
}

// errCells is returned if a caller requests the cells of an animation's frame.
var errCells = errors.New("cells are not computed for animations")

// renderer renders views of a picture, as [raster.Decoder.Views] does.
type renderer func(views []raster.View, use func(i int, img raster.Image)) error

// oneByOne returns a renderer that calls image for each view.
func oneByOne(image func(raster.View) (raster.Image, error)) renderer {
	return func(views []raster.View, use func(int, raster.Image)) error {
		for i, v := range views {
			img, err := image(v)
			if err != nil {
				return err
			}
			use(i, img)
		}
		return nil
	}
}

// analyse computes the parts w of the analysis of a picture. part returns the area that a view shows; if it is nil, w must not have
// WantCells.
func (a *Analyser) analyse(w Want, c raster.Crop, render renderer, part func(raster.View) (raster.Crop, error)) (Analysis, error) {
	if w&WantCells != 0 && part == nil {
		return Analysis{}, errCells
	}
	var out Analysis
	var views []raster.View
	var uses []func(img raster.Image)
	add := func(v raster.View, use func(img raster.Image)) {
		v.Crop = c
		views, uses = append(views, v), append(uses, use)
	}
	if w&WantColors != 0 && a.set.palette != nil {
		add(raster.View{MaxSide: ColorSide}, func(img raster.Image) {
			out.Colors = a.set.palette.shares(img.Pix, a.tallies)
			out.Has |= WantColors
		})
	}
	if w&WantThumb != 0 {
		add(raster.View{MaxSide: ThumbnailSide, Detail: a.set.backbone.detail()}, func(img raster.Image) {
			out.Thumb = a.jpeg(img, thumbnailQuality)
			out.Has |= WantThumb
		})
	}
	if pictures := w & (WantPicture | WantRendition); pictures != 0 {
		add(raster.View{MaxSide: pictures.side()}, func(img raster.Image) {
			out.Picture = a.jpeg(img, pictureQuality)
			out.Has |= pictures
		})
	}
	network := w&(WantConcepts|WantCells) != 0
	var input raster.Image // of the network, which runs after the memory of the whole picture is released
	if size := a.set.backbone.size; network {
		add(raster.View{Centre: a.set.backbone.centre, Box: true, Width: size, Height: size}, func(img raster.Image) {
			input = img // valid after render, because its view is the last
		})
	}
	if len(views) > 0 {
		if err := render(views, func(i int, img raster.Image) { uses[i](img) }); err != nil {
			return Analysis{}, err
		}
	}
	if !network {
		return out, nil
	}
	var err error
	if w&WantCells != 0 {
		out.Cells.Box, err = part(views[len(views)-1])
	}
	if err == nil {
		err = a.recognise(input, w, &out)
	}
	if err != nil {
		return Analysis{}, err
	}
	return out, nil
}

// recognise fills the parts of w that need the network. img has the size of the network's input.
func (a *Analyser) recognise(img raster.Image, w Want, out *Analysis) error {
	if w&WantConcepts != 0 {
		if err := a.concepts(img, out); err != nil {
			return err
		}
	}
	if w&WantCells == 0 {
		return nil
	}
	return a.cells(img, out)
}

// concepts runs the network on img, which has the size of the network's input, and fills the parts of WantConcepts.
func (a *Analyser) concepts(img raster.Image, out *Analysis) error {
	if err := a.fits(img); err != nil {
		return err
	}
	_, general, food := a.recogniser.Shape()
	values := make([]float32, general+food)
	out.General, out.Food = values[:general:general], values[general:]
	if err := a.recogniser.Recognise(img.Pix, &out.Embedding, out.General, out.Food); err != nil {
		return err
	}
	out.Has |= WantConcepts
	return nil
}

// cells runs the network on img cell by cell and fills out.Cells. img has the size of the network's input.
func (a *Analyser) cells(img raster.Image, out *Analysis) error {
	if err := a.fits(img); err != nil {
		return err
	}
	c := &out.Cells
	c.Classes = a.recogniser.Classes()
	if c.Height, c.Width = a.recogniser.CellsShape(); c.Height == 0 {
		return fmt.Errorf("the network has no map of cells: %w", ErrNetwork)
	}
	c.Rows = make([]float32, c.Height*c.Width*(c.Classes+Dim))
	if err := a.recogniser.Cells(img.Pix, c.Rows); err != nil {
		return err
	}
	if !c.Valid() {
		return fmt.Errorf("cells: %w", ErrNetwork)
	}
	out.Has |= WantCells
	return nil
}

// fits returns ErrNetwork if img does not have the size of the network's input.
func (a *Analyser) fits(img raster.Image) error {
	if bb := a.set.backbone; img.Width != bb.size || img.Height != bb.size || len(img.Pix) != 3*bb.size*bb.size {
		return fmt.Errorf("picture of %d×%d, want %d×%d: %w", img.Width, img.Height, bb.size, bb.size, ErrNetwork)
	}
	return nil
}
