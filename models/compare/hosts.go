package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/image/bmp"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/models"
)

// inBrowser compares a prediction in a page with onnxruntime-web, which runs the network alone. The picture is a bitmap of the network's
// size, which costs nothing to decode. The first case computes concepts from the bitmap in the page's own thread. The second case is a
// whole call of /v2 with base64. No peer has that, so it has no limit.
func (b *bench) inBrowser(browser *program) []comparison {
	picture := filepath.Join(b.dir, "small.bmp")
	general := sync.OnceValues(func() (string, error) {
		photo, err := photo(1152, 864)
		if err != nil {
			return "", err
		}
		small, err := shrinkStandard(photo)
		if err != nil {
			return "", err
		}
		if err := writeBitmap(picture, small); err != nil {
			return "", err
		}
		return generalID()
	})
	ours := func(side string) measure {
		return func(n int) (float64, error) {
			model, err := general()
			if err != nil {
				return 0, err
			}
			return browser.time(map[string]any{"side": side, "picture": picture, "model": model})(n)
		}
	}
	peer := browser.time(map[string]any{"side": "onnxruntime-web", "model": filepath.Join(b.shared, "model-next", "general.onnx")})
	const kernels, rival = "browser", "onnxruntime-web, float32"
	return []comparison{
		{work: "the general network, int8", rival: rival, kernels: kernels, bar: both(0.45), ours: ours("ours"), peer: peer},
		{work: "all of /v2 in a page", rival: rival, kernels: kernels, ours: ours("v2"), peer: peer},
	}
}

func generalID() (string, error) {
	set, err := predict.LoadTables(models.FS)
	if err != nil {
		return "", err
	}
	return set.Models()[0].ID, nil
}

func writeBitmap(path string, img image.Image) error {
	var b bytes.Buffer
	if err := bmp.Encode(&b, img); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// edge compares a predict call with base64 over HTTP at an edge and at an origin: CPU time of the whole
// process for one photo, the mean over all photos of the test data.
func (b *bench) edge() comparison {
	side := func(binary, name string) measure {
		serving := sync.OnceValues(func() (*server, error) { return b.serve(binary, name) })
		return func(int) (float64, error) {
			s, err := serving()
			if err != nil {
				return 0, err
			}
			general, err := generalID()
			if err != nil {
				return 0, err
			}
			bodies, err := photoBodies(filepath.Join(b.shared, "photos"))
			if err != nil {
				return 0, err
			}
			return s.predict(general, bodies)
		}
	}
	return comparison{
		work: "prediction of one of 60 photos by base64, at an edge", rival: "at the origin", bar: both(1.15),
		ours: side("bin/sightline-edge", "edge"), peer: side("bin/sightline", "origin"),
	}
}

// serve starts a server on a new folder and stops it at the end.
func (b *bench) serve(binary, name string) (*server, error) {
	s, err := startServer(binary, filepath.Join(b.dir, name))
	if err == nil {
		b.stops = append(b.stops, s.stop)
	}
	return s, err
}

// photoBodies returns a predict request for each photo.
func photoBodies(dir string) ([][]byte, error) {
	photos, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if err != nil {
		return nil, err
	}
	if len(photos) == 0 {
		return nil, fmt.Errorf("no photos in %s", dir)
	}
	var bodies [][]byte
	for _, path := range photos {
		picture, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(map[string]any{"inputs": []any{map[string]any{
			"data": map[string]any{"image": map[string]any{"base64": base64.StdEncoding.EncodeToString(picture)}},
		}}})
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// server is a running binary with an API key of its first application.
type server struct {
	cmd      *exec.Cmd
	url, key string
}

var (
	keyLine     = regexp.MustCompile(`^    key     ([0-9a-f]{32})\n`)
	addressLine = regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)
)

// startServer starts a server on a data folder that does not exist yet.
func startServer(binary, data string) (*server, error) {
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "json")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	logged, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s (make build creates it): %w", binary, err)
	}
	s := &server{cmd: cmd}
	if s.key, err = first(stdout, keyLine); err == nil { // serve prints it before the line of the log
		s.url, err = first(logged, addressLine)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("%s serve: %w", binary, err)
	}
	s.url = "http://" + s.url
	return s, nil
}

// first returns the first group of a pattern in the first line that matches. It reads and drops the later lines.
func first(r io.Reader, pattern *regexp.Regexp) (string, error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if found := pattern.FindSubmatch(line); found != nil {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return string(found[1]), nil
		}
		if err != nil {
			return "", fmt.Errorf("no line with %s: %w", pattern, err)
		}
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait() // the answers have already reported its errors
}

// predict sends every body once, after warm-up requests, and returns the CPU time of one request in milliseconds.
func (s *server) predict(model string, bodies [][]byte) (float64, error) {
	var start time.Duration
	for i := -warmUps; i < len(bodies); i++ {
		if i == 0 {
			var err error
			if start, err = processTime(s.cmd.Process.Pid); err != nil {
				return 0, err
			}
		}
		if err := s.ask(model, bodies[max(i, 0)]); err != nil {
			return 0, err
		}
	}
	end, err := processTime(s.cmd.Process.Pid)
	return float64(end-start) / float64(time.Millisecond) / float64(len(bodies)), err
}

func (s *server) ask(model string, body []byte) error {
	_, err := s.send(http.MethodPost, "/v2/models/"+model+"/outputs", body)
	return err
}

// send returns the answer to a request. Any other status than 200 is an error.
func (s *server) send(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Key "+s.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, res.Status, answer)
	}
	return answer, err
}

// processTime returns the CPU time so far of a process's threads and of the processes that it has started, as the
// scheduler counts it. The process that serves at an edge is such a process.
func processTime(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, thread := range threads {
		ran, err := numbers(filepath.Join(thread, "schedstat"))
		if errors.Is(err, os.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ran[0])
		children, err := numbers(filepath.Join(thread, "children"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		for _, child := range children {
			took, err := processTime(child)
			if err != nil {
				return 0, err
			}
			sum += took
		}
	}
	return sum, nil
}

// numbers returns the numbers in a file of the system.
func numbers(path string) ([]int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, field := range bytes.Fields(b) {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, n)
	}
	return all, nil
}
