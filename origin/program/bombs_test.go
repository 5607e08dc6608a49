package program

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
)

// chunk returns a chunk of a PNG file.
func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(b, kind...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// flatPNG returns a PNG of one colour, compressed a thousandfold. Without rows it declares the size and has no pixels.
func flatPNG(width, height int, rows bool) []byte {
	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, 8, 2, 0, 0, 0)
	var data bytes.Buffer
	z := zlib.NewWriter(&data)
	if rows {
		row := make([]byte, 1+3*width)
		for range height {
			_, _ = z.Write(row)
		}
	}
	_ = z.Close()
	out := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", header)...)
	out = append(out, chunk("IDAT", data.Bytes())...)
	return append(out, chunk("IEND", nil)...)
}

// scans returns a small JPEG that claims to be progressive and has n start-of-scan markers.
func scans(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	j := b.Bytes()
	at := bytes.Index(j, []byte{0xff, 0xda})
	frame := bytes.Index(j, []byte{0xff, 0xc0})
	out := bytes.Clone(j[:at])
	out[frame+1] = 0xc2 // progressive
	for range n {
		out = append(out, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0)
	}
	return append(out, 0xff, 0xd9)
}

// frames returns a GIF of n frames.
func frames(t testing.TB, n, side int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.Black, color.White})
	g := &gif.GIF{}
	for range n {
		g.Image = append(g.Image, img)
		g.Delay = append(g.Delay, 1)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withSize sets the size that a JPEG's frame header declares.
func withSize(j []byte, width, height uint16) []byte {
	j = bytes.Clone(j)
	at := bytes.Index(j, []byte{0xff, 0xc0})
	binary.BigEndian.PutUint16(j[at+5:], height)
	binary.BigEndian.PutUint16(j[at+7:], width)
	return j
}

// bombs returns pictures and bodies that take far more work or memory than their size suggests.
func bombs(t testing.TB) map[string][]byte {
	t.Helper()
	photo := sample(t, "09-sea-turtle.jpg")
	bmp := append([]byte("BM"), make([]byte, 52)...)
	binary.LittleEndian.PutUint32(bmp[10:], 54)
	binary.LittleEndian.PutUint32(bmp[14:], 40)
	binary.LittleEndian.PutUint32(bmp[18:], 65535)
	binary.LittleEndian.PutUint32(bmp[22:], 65535)
	bmp[26], bmp[28] = 1, 24
	tiff := []byte("II*\x00\x08\x00\x00\x00\x05\x00" +
		"\x00\x01\x04\x00\x01\x00\x00\x00\xff\xff\x00\x00" + "\x01\x01\x04\x00\x01\x00\x00\x00\xff\xff\x00\x00" +
		"\x02\x01\x03\x00\x01\x00\x00\x00\x08\x00\x00\x00" + "\x11\x01\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00" +
		"\x17\x01\x04\x00\x01\x00\x00\x00\xff\xff\xff\x7f" + "\x00\x00\x00\x00")
	webp := []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xffVP8 \x00\x00\x00\x00")
	pictures := map[string][]byte{
		"GIF of 65,535 squared in 34 bytes": []byte("GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x02L\x01\x00;"),
		"GIF of 10,000 frames":              frames(t, 10_000, 16),
		"PNG of 65,535 squared, empty":      flatPNG(65535, 65535, false),
		"PNG of 30,000 by 30,000, empty":    flatPNG(30000, 30000, false),
		"PNG of 6,300 squared, flat":        flatPNG(6300, 6300, true),
		"PNG of 14,000 squared, flat":       flatPNG(14000, 14000, true),
		"JPEG that declares 65,535 squared": withSize(photo, 65535, 65535),
		"JPEG that declares 14,000 squared": withSize(photo, 14000, 14000),
		"JPEG of 2,001 scans":               scans(t, 2001),
		"JPEG of 64 scans":                  scans(t, 64),
		"BMP of 65,535 squared":             bmp,
		"TIFF of 65,535 squared":            tiff,
		"WebP of 16,777,216 squared":        webp,
		"JPEG cut in the middle":            photo[:len(photo)/2],
		"JPEG of a megabyte of fill bytes":  append(append(bytes.Clone(photo[:2]), bytes.Repeat([]byte{0xff}, 1<<20)...), photo[2:]...),
		"JPEG of 5,000 comments":            append(append(bytes.Clone(photo[:2]), bytes.Repeat([]byte("\xff\xfe\x00\x02"), 5000)...), photo[2:]...),
	}
	out := map[string][]byte{
		"JSON of 8 MB of tiny objects": []byte(`{"inputs":[{"data":{"metadata":[` + strings.Repeat("{},", 8<<20/3) + `{}]}}]}`),
		"JSON nested a million deep":   []byte(`{"inputs":` + strings.Repeat("[", 1<<20)),
		"JSON of a million names":      []byte(`{"inputs":[{` + strings.Repeat(`"a":1,`, 1<<20) + `"b":1}]}`),
		"JSON of one 32 MB string":     []byte(`{"inputs":[{"data":{"image":{"base64":"` + strings.Repeat("A", 32<<20) + `"}}}]}`),
		"base64 of 20 MB of line ends": []byte(`{"inputs":[{"data":{"image":{"base64":"` + strings.Repeat(`\n`, 10<<20) + `"}}}]}`),
	}
	for name, p := range pictures {
		out[name] = byBase64(p)
	}
	n := 4
	if testkit.Soaking() {
		n = 16
	}
	out["batch of PNG of 6,300 squared"] = byBase64(slices.Repeat([][]byte{pictures["PNG of 6,300 squared, flat"]}, n)...)
	return out
}

// TestBombs sends each bomb while another caller predicts. No answer is a 5xx, and each has the envelope. With [testkit.Timing] every
// answer comes in time, the process grows by at most 512 MB, and the other caller is hardly slower.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of decoding")
	}
	p := startProcess(t)
	client := own(t)
	innocent := byBase64(sample(t, "35-slice-of-pizza.jpg"))
	ask := func() time.Duration {
		start := time.Now()
		if code, _ := predictBy(t, client, p.base, generalID, innocent); code != 200 {
			t.Errorf("the innocent gets %d", code)
		}
		return time.Since(start)
	}
	var alone, concurrent latencies
	for range 30 {
		alone.add(ask())
	}
	before, _ := p.memory(t)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				concurrent.add(ask())
			}
		}
	}()
	worst, slowest := time.Duration(0), ""
	all := bombs(t)
	for name, body := range all {
		start := time.Now()
		res, err := client.Post(p.base+"/v2/models/"+generalID+"/outputs", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		took := time.Since(start)
		limit := 2 * time.Second
		if strings.HasPrefix(name, "batch") {
			limit *= 16
		} else if took > worst {
			worst, slowest = took, name
		}
		limit += 20 * alone.p(99) // allowance for other work on the machine
		if res.StatusCode >= 500 || testkit.Timing() && took > limit {
			t.Errorf("%s: %d after %v: %.300q", name, res.StatusCode, took, b)
		}
		var envelope struct{ Status struct{ Code int } }
		if err := json.Unmarshal(b, &envelope); err != nil || envelope.Status.Code == 0 {
			t.Errorf("%s: no envelope: %.200q", name, b)
		}
	}
	close(stop)
	<-stopped
	_, peak := p.memory(t)
	if testkit.Timing() && peak-before > 512<<20 {
		t.Errorf("the process grew by %d MB, want at most 512", (peak-before)>>20)
	}
	if got, limit := concurrent.p(99), max(250*time.Millisecond, 10*alone.p(99)); testkit.Timing() && got > limit {
		t.Errorf("the innocent's p99 is %v, want at most %v", got, limit)
	}
	if res, err := client.Get(p.base + "/healthz"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the server after the bombs: %v", err)
	} else {
		_ = res.Body.Close()
	}
	t.Logf("%d bombs, slowest %v (%s), growth %d MB, innocent p99 %v (alone %v) of %d",
		len(all), worst, slowest, (peak-before)>>20, concurrent.p(99), alone.p(99), concurrent.n())
}
