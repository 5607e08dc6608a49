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
	offsets := make([]byte, 0, 4*n)
	for i := range n {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(8+12*(i%lists)))
	}
	files["TIFF of lists"] = tiff(lists, n, offsets)
	const overlaps = 63 // directories at distances of one entry
	offsets = offsets[:0]
	for i := range overlaps {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(2000+12*i))
	}
	overlapping := tiff(1, overlaps, offsets)
	overlapping = append(overlapping, make([]byte, 2000-len(overlapping))...)
	for range min(size, 800_000) / 12 {
		overlapping = append(overlapping, "\xff\xff\x04\x00\x01\x00\x00\x00\xff\xff\x00\x00"...)
	}
	files["TIFF of overlaps"] = overlapping
	return files
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

// tiff returns a TIFF of one grey pixel, whose second directory has n equal entries, and then tail. count is the number of directory
// offsets in tail that each entry names.
func tiff(n, count int, tail []byte) []byte {
	first := [][3]uint32{{256, 1, 1}, {257, 1, 1}, {258, 1, 8}, {259, 1, 1}, {262, 1, 1}, {273, 1, 8}, {278, 1, 1}, {279, 1, 1}}
	b := []byte("II*\x00\x08\x00\x00\x00")
	directory := func(n int, next uint32, entry func(i int) [3]uint32) {
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
		for i := range n {
			e := entry(i) // tag, count, value
			b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
			b = binary.LittleEndian.AppendUint16(b, 4)
			b = binary.LittleEndian.AppendUint32(b, e[1])
			b = binary.LittleEndian.AppendUint32(b, e[2])
		}
		b = binary.LittleEndian.AppendUint32(b, next)
	}
	second := uint32(8 + 2 + 12*len(first) + 4)
	directory(len(first), second, func(i int) [3]uint32 { return first[i] })
	directory(n, 0, func(int) [3]uint32 { return [3]uint32{330, uint32(count), second + uint32(2+12*n+4)} })
	return append(b, tail...)
}

// AttackHosted adds hostile pictures of about size bytes to the application of key, and reads them at their public URLs: a byte of each,
// parts of each, and then with many readers of each that read nothing. Meanwhile a photo is answered. If timed, it checks the processor
// time and the memory of the process pid.
func AttackHosted(t testing.TB, base, key string, pid, size, readers int, timed bool) {
	t.Helper()
	good := addPicture(t, base, key, "good", photo(t))
	urls, files := map[string]string{}, hostileFiles(t, size)
	for name, data := range files {
		urls[name] = addPicture(t, base, key, strings.ReplaceAll(name, " ", "-"), data)
	}
	check := func(what string, d, limit time.Duration) {
		t.Logf("%s: %v", what, d)
		if timed && d > limit {
			t.Errorf("%s: %v, want at most %v", what, d, limit)
		}
	}
	part(t, good, 0)
	for name, url := range urls {
		began := processorTime(t, pid)
		part(t, url, 0)
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
		check("a photo beside the readers", time.Since(began), time.Second)
	}
	more := (residentMemory(t, pid) - before) >> 20
	t.Logf("%d readers of each file: %d MB more", readers, more)
	if timed && more > 256 {
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
