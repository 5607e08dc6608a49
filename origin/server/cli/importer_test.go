package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/collection"
)

// emptyApp is a session with an application without inputs.
type emptyApp struct{ Session }

func (emptyApp) call(context.Context, string, string, []byte) (reply, error) {
	return reply{status: 200, body: []byte(`{"status":{"code":10000},"inputs":[]}`)}, nil
}

// TestSlowPicturesInBatches imports pictures that take seconds to decode between others. A call has at most four of them.
func TestSlowPicturesInBatches(t *testing.T) {
	dir := t.TempDir()
	slow, err := os.ReadFile(filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "jxl", "rgba.jxl"))
	if err != nil {
		t.Fatal(err)
	}
	quick := []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")
	for i := range 20 {
		data := quick
		if i%2 == 0 {
			data = slow
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.jxl", i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := collection.Open(collection.Files{FS: os.DirFS(dir), IsPicture: IsPicture}, "", collection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	im := newImporter(emptyApp{}, source, 20)
	im.progress = NewProgress(&bytes.Buffer{}, ProgressOptions{Quiet: true})
	var got [][2]int // inputs, and slow ones
	err = im.batches(t.Context(), func(b batch) error {
		var call struct {
			Inputs []struct {
				Data struct{ Image struct{ Base64 []byte } }
			}
		}
		err := json.Unmarshal(b.body, &call)
		n := 0
		for _, in := range call.Inputs {
			if bytes.Equal(in.Data.Image.Base64, slow) {
				n++
			}
		}
		got = append(got, [2]int{len(b.inputs), n})
		return err
	})
	if want := [][2]int{{8, 4}, {8, 4}, {4, 2}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
