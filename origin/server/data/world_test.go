package data

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// sampleFolder is a data folder with an application's inputs, a trained model and a picture that was sent
// to be predicted.
type sampleFolder struct {
	*Folder
	t      testing.TB
	world  *apitest.World
	set    *predict.Set
	app    catalog.AppID
	hosted string // name of the picture

	pictures []blob.Hash // of the inputs
}

func newSampleFolder(t *testing.T, dir string) *sampleFolder {
	t.Helper()
	f := mustOpen(t, dir, Options{MinFree: 1})
	t.Cleanup(func() { _ = f.Close() })
	u := &sampleFolder{Folder: f, t: t, set: apitest.Tiny(t)}
	u.world = apitest.NewWorld(t, f.Store, u.set, nil, nil)
	var err error
	if u.app, err = catalog.ParseAppID(u.world.App); err != nil {
		t.Fatal(err)
	}
	var inputs []string
	for i, name := range []string{"red.png", "blue.png", "red.png"} {
		inputs = append(inputs, fmt.Sprintf(`{"id":"i%d","data":{"image":{"base64":"%s","crop":[0,0,1,%v]},"concepts":[{"id":"c%d"}]}}`,
			i, base64.StdEncoding.EncodeToString(apitest.Picture(name)), 1-float64(i)/10, i%2))
	}
	u.call("POST", "/v2/inputs", `{"inputs":[`+strings.Join(inputs, ",")+`]}`)
	u.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"c0"},{"id":"c1"}]}}}}`)
	u.call("POST", "/v2/models/own/versions", "")
	u.world.Step(t, time.Second)
	u.copyBlobs()
	u.pictures = []blob.Hash{u.picture("i0"), u.picture("i1"), u.picture("i2")}
	h, err := blob.OpenHosted(blob.HostedOptions{FS: f.Files, Blobs: f.Blobs, Random: system.Random, References: u.world.Engine.Register.References})
	if err != nil {
		t.Fatal(err)
	}
	if u.hosted, _, err = h.Add(t.Context(), blob.AppID{}, []byte("sent to be predicted"), "image/png", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := f.StoreBundles(u.set.Base(), apitest.TinyBundles(t)); err != nil {
		t.Fatal(err)
	}
	return u
}

// copyBlobs brings the pictures that the world keeps into the folder.
func (u *sampleFolder) copyBlobs() {
	u.t.Helper()
	err := u.world.Blobs.Each(u.t.Context(), blob.Hash{}, func(h blob.Hash) error {
		b, err := u.world.Blobs.Get(u.t.Context(), h)
		if err == nil && u.world.Engine.Register.References(h) {
			_, err = u.Blobs.Put(u.t.Context(), bytes.NewReader(b), h)
		}
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
}

func (u *sampleFolder) call(method, path, body string) {
	u.t.Helper()
	if r := u.world.Serve(u.t, api.Request{Method: method, Path: path, Body: []byte(body)}); r.Status != 200 {
		u.t.Fatalf("%s %s = %d %s", method, path, r.Status, r.Body)
	}
}

// options are those of a check of the folder.
func (u *sampleFolder) options() CheckOptions {
	s := index.Space{Base: u.set.Base()}
	for _, c := range u.set.General().Concepts {
		s.Concepts = append(s.Concepts, c.ID)
	}
	return CheckOptions{Space: s}
}

// storedPictures returns the pictures of the world's inputs that the folder has.
func (u *sampleFolder) storedPictures() (pictures []string) {
	u.t.Helper()
	for _, p := range u.pictures {
		has, err := u.Blobs.Has(u.t.Context(), p)
		if err != nil {
			u.t.Fatal(err)
		}
		if has {
			pictures = append(pictures, p.String())
		}
	}
	return pictures
}

// table is the prefix of one of an application's tables; see package catalog.
func table(app catalog.AppID, name byte) []byte {
	prefix := app.LogPrefix()
	prefix[len(prefix)-1] = name
	return prefix
}

// lastKey is the last key that begins with prefix.
func (u *sampleFolder) lastKey(prefix []byte) []byte {
	u.t.Helper()
	var last []byte
	var err error
	for key := range kv.WithPrefix(u.Store, prefix, &err) {
		last = bytes.Clone(key)
	}
	if err != nil || last == nil {
		u.t.Fatalf("last key under %q: %v", prefix, err)
	}
	return last
}

// change commits a batch that bypasses the log, unlike any program of ours.
func (u *sampleFolder) change(do func(*kv.Batch)) {
	u.t.Helper()
	var b kv.Batch
	do(&b)
	wait, err := u.Store.Commit(&b)
	if err == nil {
		err = wait()
	}
	if err != nil {
		u.t.Fatal(err)
	}
}

// input is the picture of an input.
func (u *sampleFolder) picture(id string) blob.Hash {
	u.t.Helper()
	in, err := catalog.Read(u.Store, u.app).InputByID(id)
	if err != nil {
		u.t.Fatal(err)
	}
	return in.Blob
}

// silent is a progress that nobody watches.
func silent(control.BackupStats, control.BackupStats) {}
