package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
)

// Bounds of similarity depend on the network, so they are measured with it and are part of its manifest. No training
// saw the pictures. They make these kinds of pairs:
//
//	views      a picture and a frame of 4/5 of its width and height: another shot of the scene
//	different  two pictures: no two of them show one scene
//	alike      two pictures with the same labels ┐
//	unlike     two pictures without a common one ┴ all other pairs are neither
const (
	frame     = 0.8  // side of a view as a share of the picture's side
	viewShare = 0.05 // assumed share of a collection's pictures of which it has another view, for SameScene
	precision = 0.9  // minimum share of the pairs above SameScene that show one scene
	fine      = 1000 // number of steps of a bound from 0 to 1
)

// frames are the crops of the views of a picture, at two corners.
var frames = []raster.Crop{{Bottom: frame, Right: frame}, {Top: 1 - frame, Left: 1 - frame, Bottom: 1, Right: 1}}

// pairs are the similarities of pairs of pictures.
type pairs struct{ views, different, alike, unlike []float64 }

// measureSimilarity measures the bounds of similarity with the bundles in a folder.
func measureSimilarity(bundles string, set []labelledPicture) (predict.Similarity, error) {
	models, err := predict.Load(os.DirFS(bundles))
	if err != nil {
		return predict.Similarity{}, err
	}
	p, err := comparePairs(models.NewAnalyser(raster.Limits{}), set)
	if err != nil {
		return predict.Similarity{}, err
	}
	return p.bounds(len(set))
}

// comparePairs compares all pictures of a set, and each with its views.
func comparePairs(a *predict.Analyser, set []labelledPicture) (p pairs, err error) {
	embeddings := make([]predict.Embedding, len(set))
	for i, l := range set {
		data, err := os.ReadFile(l.path)
		if err != nil {
			return p, err
		}
		for at, crop := range append([]raster.Crop{{}}, frames...) {
			out, err := a.Analyse(data, crop, predict.WantConcepts)
			if err != nil {
				return p, fmt.Errorf("%s: %w", l.path, err)
			}
			if at == 0 {
				embeddings[i] = out.Embedding
			} else {
				p.views = append(p.views, similarity(&embeddings[i], &out.Embedding))
			}
		}
		for j, o := range set[:i] {
			s := similarity(&embeddings[i], &embeddings[j])
			p.different = append(p.different, s)
			switch common := len(slices.DeleteFunc(slices.Clone(l.names), func(n string) bool { return !slices.Contains(o.names, n) })); {
			case common == 0:
				p.unlike = append(p.unlike, s)
			case common == len(l.names) && common == len(o.names):
				p.alike = append(p.alike, s)
			}
		}
	}
	return p, nil
}

func similarity(a, b *predict.Embedding) float64 { return (1 + a.Cosine(b)) / 2 }

// bounds returns the bounds for a collection of so many pictures, and prints how many pairs reach them.
func (p *pairs) bounds(pictures int) (predict.Similarity, error) {
	related, ok := search.BestThreshold(p.alike, p.unlike)
	if !ok {
		return predict.Similarity{}, errors.New("no similarity separates pictures with the same labels from those without a common one")
	}
	s := predict.Similarity{Related: math.Floor(related*fine) / fine, Pictures: pictures}
	for step := fine; step > 0 && p.precision(float64(step)/fine, pictures) >= precision; step-- {
		s.SameScene = float64(step) / fine
	}
	if s.SameScene < s.Related || reach(p.views, s.SameScene) == 0 {
		return predict.Similarity{}, fmt.Errorf("%d of %d views reach %.3f, and pictures of the same kind of thing %.3f: no bound of one scene",
			reach(p.views, s.SameScene), len(p.views), s.SameScene, s.Related)
	}
	for _, of := range []struct {
		name  string
		pairs []float64
		least float64
	}{
		{"with the same labels", p.alike, s.Related},
		{"without a common label", p.unlike, s.Related},
		{"views", p.views, s.SameScene},
		{"different pictures", p.different, s.SameScene},
	} {
		logf("similarity %.3f: %d of %d pairs, %s", of.least, reach(of.pairs, of.least), len(of.pairs), of.name)
	}
	return s, nil
}

// precision returns the share of pairs of at least a similarity that show one scene, in a collection of so many pictures; 1 without pairs.
func (p *pairs) precision(least float64, pictures int) float64 {
	views := viewShare * float64(pictures) * float64(reach(p.views, least)) / float64(len(p.views))
	different := float64(reach(p.different, least))
	if views+different == 0 {
		return 1
	}
	return views / (views + different)
}

// reach returns the number of similarities that are at least least.
func reach(pairs []float64, least float64) (n int) {
	for _, s := range pairs {
		if s >= least {
			n++
		}
	}
	return n
}

// storeSimilarity replaces the bounds in the manifest of the general bundle. The rest of it, and every other file, stays as it is.
func storeSimilarity(bundles string, s predict.Similarity) error {
	path := filepath.Join(bundles, general, "manifest.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var m predict.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.Similarity = &s
	return writeManifest(path, &m)
}
