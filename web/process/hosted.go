package process

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
)

// hostileFiles returns pictures of about size bytes with valid heads and the rest made to cost time or memory when the place is removed.
func hostileFiles(t testing.TB, size int) map[string][]byte {
	photo, drawing := photo(t), drawing(t)
	run := bytes.Index(photo, []byte("\xff\xda")) // fill bytes may precede any marker
	files := map[string][]byte{
		"JPEG of fill bytes": slices.Concat(photo[:run], bytes.Repeat([]byte{0xff}, size), photo[run:]),
		"JPEG with a tail":   slices.Concat(photo, make([]byte, size)),
		"PNG of chunks":      slices.Concat(drawing[:pngHead], bytes.Repeat([]byte("\x00\x00\x00\x00juNk\x93\x7f\xb8\x9b"), min(size, 2<<20)/12), drawing[pngHead:]),
		"GIF of extensions":  slices.Concat(animation(t), bytes.Repeat([]byte("\x21\x01\x00"), size/3), []byte(";")),
	}
	const lists = 12_000 // entries that all name the same list of directories
	n := min(size, 1<<20) / 4
	files["TIFF of lists"] = tiff(slices.Repeat([][3]uint32{{330, uint32(n), 0}}, lists), words(n, func(i int) int { return 8 + 12*(i%lists) }))
	const overlaps, from = 63, 2000 // directories at distances of one entry
	overlapping := tiff([][3]uint32{{330, overlaps, 0}}, words(overlaps, func(i int) int { return from + 12*i }))
	overlapping = append(overlapping, make([]byte, from-len(overlapping))...)
	files["TIFF of overlaps"] = append(overlapping, bytes.Repeat([]byte("\xff\xff\x04\x00\x01\x00\x00\x00\xff\xff\x00\x00"), min(size, 800_000)/12)...)
	n = size / 12 // strips of one byte, in an order that is not that of the file
	strips := words(n, func(i int) int { return size/2 + i*7919%(size/2) })
	files["TIFF of strips"] = slices.Concat(tiff([][3]uint32{{273, uint32(n), 0}, {279, uint32(n), uint32(4 * n)}}, strips), words(n, func(int) int { return 1 }), make([]byte, size/3))
	return files
}

// words returns n little-endian numbers.
func words(n int, value func(i int) int) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(value(i)))
	}
	return b
}

// photo returns a small JPEG.
func photo(t testing.TB) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 32)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// animation returns a GIF of one picture without its end.
func animation(t testing.TB) []byte {
	var b bytes.Buffer
	if err := gif.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()[:b.Len()-1]
}

// pngHead is the number of bytes of a PNG before its second chunk.
const pngHead = 33

// drawing returns a small PNG.
func drawing(t testing.TB) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tiff returns a TIFF of one grey pixel whose second directory has more entries, and then tail. An entry has a tag, a count, and the offset
// of its value in tail.
func tiff(more [][3]uint32, tail []byte) []byte {
	first := [][3]uint32{{256, 1, 1}, {257, 1, 1}, {258, 1, 8}, {259, 1, 1}, {262, 1, 1}, {273, 1, 8}, {278, 1, 1}, {279, 1, 1}}
	bytesOf := func(entries [][3]uint32) uint32 { return uint32(2 + 12*len(entries) + 4) }
	second := 8 + bytesOf(first)
	b := []byte("II*\x00\x08\x00\x00\x00")
	directory := func(entries [][3]uint32, base, next uint32) {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(entries)))
		for _, e := range entries {
			b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
			b = binary.LittleEndian.AppendUint16(b, 4)
			b = binary.LittleEndian.AppendUint32(b, e[1])
			b = binary.LittleEndian.AppendUint32(b, base+e[2])
		}
		b = binary.LittleEndian.AppendUint32(b, next)
	}
	directory(first, 0, second)
	directory(more, second+bytesOf(more), 0)
	return append(b, tail...)
}

// AttackHosted adds hostile pictures of about size bytes to the application of key, and reads them at their public URLs: a byte of each,
// parts of each, and then with many readers of each that read nothing. Meanwhile a photo is answered. With [testkit.Timing] it checks the
// processor time and the memory of the process pid.
func AttackHosted(t testing.TB, base, key string, pid, size, readers int) {
	t.Helper()
	good := addPicture(t, base, key, "good", photo(t))
	urls, files := map[string]string{}, hostileFiles(t, size)
	for name, data := range files {
		urls[name] = addPicture(t, base, key, strings.ReplaceAll(name, " ", "-"), data)
	}
	check := func(what string, d, limit time.Duration) {
		t.Logf("%s: %v", what, d)
		if testkit.Timing() && d > limit {
			t.Errorf("%s: %v, want at most %v", what, d, limit)
		}
	}
	part(t, good, 0)
	for name, url := range urls {
		memory, began := residentMemory(t, pid), processorTime(t, pid)
		part(t, url, 0)
		more := (residentMemory(t, pid) - memory) >> 20
		t.Logf("%s, first read: %d MB more", name, more)
		if testkit.Timing() && more > 64 {
			t.Errorf("%s, first read: %d MB more, want at most 64", name, more)
		}
		check(name+", first read, processor time", processorTime(t, pid)-began, 500*time.Millisecond)
		began = processorTime(t, pid)
		for i := range 20 {
			part(t, url, i*len(files[name])/21)
		}
		check(name+", later reads, mean processor time", (processorTime(t, pid)-began)/20, 5*time.Millisecond)
	}
	before := residentMemory(t, pid)
	for _, url := range urls {
		path := url[strings.Index(url, "/hosted/"):]
		Mute(t, strings.TrimPrefix(base, "http://"), readers, func(int) string { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n" })
	}
	for range 20 {
		began := time.Now()
		part(t, good, 0)
		check("a photo during the readers", time.Since(began), time.Second)
	}
	more := (residentMemory(t, pid) - before) >> 20
	t.Logf("%d readers of each file: %d MB more", readers, more)
	if testkit.Timing() && more > 256 {
		t.Errorf("%d readers of each file take %d MB, want at most 256", readers, more)
	}
}

// addPicture adds an input and returns the public URL of its picture.
func addPicture(t testing.TB, base, key, id string, data []byte) string {
	t.Helper()
	body := fmt.Sprintf(`{"inputs":[{"id":%q,"data":{"image":{"base64":%q}}}]}`, id, base64.StdEncoding.EncodeToString(data))
	req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/v2/inputs", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Inputs []struct {
			Data struct{ Image struct{ URL string } }
		}
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || json.Unmarshal(text, &answer) != nil || len(answer.Inputs) != 1 || answer.Inputs[0].Data.Image.URL == "" {
		t.Fatalf("add %s: %d %.300s, %v", id, res.StatusCode, text, err)
	}
	return answer.Inputs[0].Data.Image.URL
}

// part requests one byte of a hosted file.
func part(t testing.TB, url string, at int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusPartialContent || len(b) != 1 {
		t.Errorf("byte %d of %s: %d with %d bytes, %v", at, url, res.StatusCode, len(b), err)
	}
}

// processorTime returns the processor time of a process.
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("no figures of processes on this system: %v", err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // 100 a second on every Linux
}

// residentMemory returns the resident memory of a process in bytes.
func residentMemory(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skipf("no figures of processes on this system: %v", err)
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
