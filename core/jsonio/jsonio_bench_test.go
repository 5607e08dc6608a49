package jsonio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// predictBody returns the body of a predict call with n inputs, each with a picture of size bytes as base64.
func predictBody(n, size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	picture := make([]byte, size)
	var b bytes.Buffer
	b.WriteString(`{"inputs":[`)
	for i := range n {
		for j := range picture {
			picture[j] = byte(random.Uint32())
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"data":{"image":{"base64":"%s"}}}`, base64.StdEncoding.EncodeToString(picture))
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// BenchmarkPredictBody decodes 128 pictures of 20 KB, one after another into one buffer, like a predict call.
func BenchmarkPredictBody(b *testing.B) {
	body := predictBody(128, 20<<10)
	b.Run("jsonio", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		var d Doc
		var picture []byte
		for b.Loop() {
			if err := d.Parse(body, Limits{}); err != nil {
				b.Fatal(err)
			}
			for in := range d.Root().Get("inputs").Elems() {
				var err error
				if picture, err = in.Get("data").Get("image").Get("base64").Base64(picture[:0]); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("jsonio-kept", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		var d Doc
		for b.Loop() {
			if err := d.Parse(body, Limits{}); err != nil {
				b.Fatal(err)
			}
			for in := range d.Root().Get("inputs").Elems() {
				if _, err := in.Get("data").Get("image").Get("base64").Base64(nil); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var call struct {
				Inputs []struct {
					Data struct {
						Image struct {
							Base64 []byte `json:"base64"`
						} `json:"image"`
					} `json:"data"`
				} `json:"inputs"`
			}
			if err := json.Unmarshal(body, &call); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	body := predictBody(128, 20<<10)
	b.SetBytes(int64(len(body)))
	var d Doc
	for b.Loop() {
		if err := d.Parse(body, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBase64(b *testing.B) {
	picture := make([]byte, 20<<10)
	for i := range picture {
		picture[i] = byte(i * 31)
	}
	text := []byte(base64.StdEncoding.EncodeToString(picture))
	dst := make([]byte, 0, len(text))
	b.Run("jsonio", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			appendBase64(dst, text)
		}
	})
	b.Run("generic", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		buf := dst[:cap(dst)]
		for b.Loop() {
			decodeGroupsGeneric(buf, text)
		}
	})
	b.Run("encoding-base64", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		buf := dst[:cap(dst)]
		for b.Loop() {
			if _, err := base64.StdEncoding.Decode(buf, text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
