package collection

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzReadLines reads arbitrary lines. It must not panic. Every line that is not blank is an input or an error, and an input without an
// error has a picture.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte(`{"id":"a","url":"http://x/1.jpg","concepts":["cat",{"id":"dog","value":false}],"metadata":{"b":[1,2.0]}}`))
	f.Add([]byte(`{"data":{"image":{"path":"p","crop":[0,0,1,1]}},"edits":[{"id":"x","value":0.5}]}` + "\n\n" + `{"base64":"cGljdHVyZQ==","metadata_text":"{ }"}`))
	f.Add([]byte(`{"id":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		err := readLines(bytes.NewReader(data), "f", func(in Input) error {
			n++
			if in.Err == nil && in.URL == "" && in.Path == "" && in.Picture == nil {
				t.Errorf("%+v has no picture", in)
			}
			if in.Err == nil && in.Metadata != nil && !json.Valid(in.Metadata) {
				t.Errorf("metadata %q is no JSON", in.Metadata)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%v", err)
		}
		want := 0
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			if len(bytes.TrimSpace(line)) > 0 {
				want++
			}
		}
		if n != want {
			t.Errorf("%d inputs of %d lines", n, want)
		}
	})
}

// FuzzReadTable reads arbitrary tables. It must not panic, and metadata must be valid JSON.
func FuzzReadTable(f *testing.F) {
	f.Add([]byte("id,path,concepts,not_concepts,lat,lon,metadata.a.b\n1,x.jpg,cat; dog,cow,48.5,-11,7\n"))
	f.Add([]byte("\xef\xbb\xbfurl,metadata.x\nhttp://x/,\"a \"\"b\"\"\"\n,\n\"x\"y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = readTable(bytes.NewReader(data), "f", func(in Input) error { // an invalid table gives an error
			if in.Err == nil && in.Metadata != nil && !json.Valid(in.Metadata) {
				t.Errorf("metadata %q is no JSON", in.Metadata)
			}
			if in.Err == nil && in.Geo != nil && !json.Valid(in.Geo) {
				t.Errorf("place %q is no JSON", in.Geo)
			}
			return nil
		})
	})
}
