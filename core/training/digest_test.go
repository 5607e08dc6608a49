package training

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// lesson is an input of TestDigest with its labels. number and kind select its picture: pictures of one kind have similar embeddings.
type lesson struct {
	number, kind int
	labels       []string
}

func lessons() []lesson {
	return []lesson{
		{1, 0, []string{"cat"}},
		{2, 1, []string{"dog"}},
		{3, 0, []string{"cat", "-dog"}},
		{4, 2, []string{"cow"}},
		{5, 1, []string{"dog", "cow"}},
		{6, 3, nil},
		{7, 0, []string{"cat"}},
	}
}

// teach trains version one on these inputs, in this order, and returns its digest.
func (w *world) teach(inputs []lesson, concepts []string, config ...log.Setting) [sha256.Size]byte {
	w.t.Helper()
	for _, in := range inputs {
		w.n = in.number - 1
		w.add(in.kind, in.labels...)
	}
	w.make(concepts, config...)
	if v := w.train("one"); v.Code != catalog.VersionTrained {
		w.t.Fatalf("version at %d %q", v.Code, v.Detail)
	}
	return w.manifest("one").Digest
}

// TestDigest trains twins of an application. Their inputs come in another order, at another time or after other inputs, or they have
// settings without effect. The digest is the same. Each difference that can change a head gives another digest.
func TestDigest(t *testing.T) {
	pets := []string{"cat", "dog"}
	exclusive, closed := setting(settingExclusive), setting(settingClosed)
	want := newWorld(t).teach(lessons(), pets)
	if want == ([sha256.Size]byte{}) {
		t.Fatal("no digest")
	}
	same := map[string]func(*world) [sha256.Size]byte{
		"other order": func(w *world) [sha256.Size]byte {
			inputs := lessons()
			slices.Reverse(inputs)
			return w.teach(inputs, pets)
		},
		"after other inputs": func(w *world) [sha256.Size]byte {
			w.n = 100
			w.do(&log.InputDelete{Input: w.add(0, "cat")})
			w.pend("cow")
			return w.teach(lessons(), pets)
		},
		"settings that do not matter": func(w *world) [sha256.Size]byte {
			off := log.Setting{Name: settingClosed, JSON: []byte("false")}
			usual := log.Setting{Name: settingHyper, JSON: []byte(`"{\"precision\":0.9}"`)}
			return w.teach(lessons(), pets, log.Setting{Name: "select_concepts", JSON: []byte("[]")}, off, usual)
		},
	}
	for name, build := range same {
		if got := build(newWorld(t)); got != want {
			t.Errorf("%s: digest %x, want %x", name, got, want)
		}
	}
	change := func(edit func([]lesson) []lesson) func(*world) [sha256.Size]byte {
		return func(w *world) [sha256.Size]byte { return w.teach(edit(lessons()), pets) }
	}
	differ := map[string]func(*world) [sha256.Size]byte{
		"a label":       change(func(in []lesson) []lesson { in[2].labels = []string{"cat"}; return in }),
		"a sign":        change(func(in []lesson) []lesson { in[6].labels = []string{"-cat"}; return in }),
		"another label": change(func(in []lesson) []lesson { in[5].labels = []string{"cow"}; return in }),
		"a picture":     change(func(in []lesson) []lesson { in[0].number = 8; return in }),
		"one less":      change(func(in []lesson) []lesson { return in[1:] }),
		"twice":         change(func(in []lesson) []lesson { in[6] = in[0]; in[6].number = 9; return in }),
		"concepts":      func(w *world) [sha256.Size]byte { return w.teach(lessons(), []string{"cat", "dog", "cow"}) },
		"order of them": func(w *world) [sha256.Size]byte { return w.teach(lessons(), []string{"dog", "cat"}) },
		"exclusive":     func(w *world) [sha256.Size]byte { return w.teach(lessons(), pets, exclusive) },
		"precision": func(w *world) [sha256.Size]byte {
			return w.teach(lessons(), pets, log.Setting{Name: settingHyper, JSON: []byte(`"{\"precision\":0.6}"`)})
		},
		"closed": func(w *world) [sha256.Size]byte { return w.teach(lessons(), pets, closed) },
		"network": func(w *world) [sha256.Size]byte {
			w.net.base[31] = 1
			w.open()
			return w.teach(lessons(), pets)
		},
		"background": func(w *world) [sha256.Size]byte {
			w.net.background = w.net.background[1:]
			return w.teach(lessons(), pets)
		},
	}
	seen := map[[sha256.Size]byte]string{want: "the first"}
	for name, build := range differ {
		got := build(newWorld(t))
		if earlier, duplicate := seen[got]; duplicate {
			t.Errorf("%s has the digest of %s", name, earlier)
		}
		seen[got] = name
	}
	a, b := newWorld(t), newWorld(t)
	b.net.background = b.net.background[1:]
	if a.teach(lessons(), pets, closed) != b.teach(lessons(), pets, closed) {
		t.Error("the background changes the digest in a closed environment, where nothing learns from it")
	}
}

// TestDigestPreimage computes the digest by hand, as the package documents it.
func TestDigestPreimage(t *testing.T) {
	w := newWorld(t)
	got := w.teach(lessons(), []string{"cat", "dog"}, setting(settingExclusive))

	hash := func(parts ...[]byte) []byte {
		sum := sha256.Sum256(bytes.Join(parts, nil))
		return sum[:]
	}
	var examples [][]byte
	for _, in := range lessons() {
		e := vector(t, in.kind, uint64(w.net.base[0])<<32|uint64(in.number))
		labels := []byte{0, 0, 0}
		for _, l := range in.labels {
			switch l {
			case "cat":
				labels[0] = 1
			case "dog":
				labels[1] = 1
			case "-dog":
				labels[1] = 0xff
			case "cow":
				labels[2] = 1
			}
		}
		examples = append(examples, hash(marshalEmbedding(t, &e), labels))
	}
	slices.SortFunc(examples, bytes.Compare)
	var background [][]byte
	for i := range w.net.background {
		background = append(background, marshalEmbedding(t, &w.net.background[i]))
	}
	number := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	want := hash(
		[]byte("sightline training 1\n"), number(train.EngineVersion), w.net.base[:], []byte{1, 0},
		binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.9)), number(2), number(3), []byte("cat"), number(3), []byte("dog"),
		hash(background...),
		number(7), bytes.Join(examples, nil),
	)
	if !bytes.Equal(got[:], want) {
		t.Errorf("digest %x, want %x", got, want)
	}
}

func marshalEmbedding(t *testing.T, e *predict.Embedding) []byte {
	t.Helper()
	b, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
