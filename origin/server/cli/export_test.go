package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// album is a data folder with an application of some inputs, each with another picture of 100 KB.
type album struct {
	control.Folder
	inputs int
	most   int // maximum number of inputs in an answer; 0: no limit; -1: none fits

	mu   sync.Mutex
	read []weak.Pointer[byte] // the pictures that were read
}

func (a *album) image(i int) []byte { return bytes.Repeat([]byte{byte('A' + i)}, 100e3) }

func (a *album) Call(_ context.Context, _ string, r *api.Request) (api.Response, error) {
	body := `"concepts":[],"models":[],"workflows":[]`
	switch {
	case r.Path == "/v2/inputs/status":
		body = fmt.Sprintf(`"counts":{"processed":%d}`, a.inputs)
	case r.Path == "/v2/inputs":
		number, size := 1, a.inputs
		_, _ = fmt.Sscanf(r.Query, "page=%d&per_page=%d", &number, &size) // without a query: all
		from := min((number-1)*size, a.inputs)
		to := min(from+size, a.inputs)
		if a.most != 0 && to-from > max(a.most, 0) {
			return api.Response{Status: 400, Body: []byte(`{"status":{"code":11102,"description":"Invalid request","details":"The answer would be too large."}}`)}, nil
		}
		var rows []string
		for i := from; i < to; i++ {
			rows = append(rows, fmt.Sprintf(`{"id":"%d"}`, i))
		}
		body = `"inputs":[` + strings.Join(rows, ",") + "]"
	case strings.HasSuffix(r.Path, "/source"):
		id := strings.Split(r.Path, "/")[3]
		i, _ := strconv.Atoi(id)
		body = fmt.Sprintf(`"source":{"picture":"http://h/hosted/%s","sha256":"%v","edits":[]}`, id, blob.Sum(a.image(i)))
	}
	return api.Response{Status: 200, Body: []byte(`{"status":{"code":10000},` + body + "}")}, nil
}

func (a *album) Picture(_ context.Context, name string) ([]byte, string, error) {
	i, err := strconv.Atoi(name)
	data := a.image(i)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = append(a.read, weak.Make(&data[0]))
	return data, "image/png", err
}

// held returns the number of pictures that were read, and of those that are still in memory.
func (a *album) held() (read, inMemory int) {
	runtime.GC()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.read {
		if p.Value() != nil {
			inMemory++
		}
	}
	return len(a.read), inMemory
}

// slowReader takes a write of an export at each receive from next.
type slowReader struct{ next chan struct{} }

func (r *slowReader) Write(p []byte) (int, error) {
	if _, ok := <-r.next; !ok {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestExportReadsOnePicture exports to a client that reads slowly. The export has at most one picture in memory and reads the next one after
// it has written the previous one.
func TestExportReadsOnePicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &album{inputs: 5}
		client := &slowReader{next: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- ExportApp(t.Context(), a, "app", client) }()
		last := 0
		for {
			synctest.Wait()
			read, inMemory := a.held()
			if inMemory > 1 || read > last+1 {
				t.Errorf("%d pictures are in memory, and %d were read after %d", inMemory, read, last)
			}
			last = read
			select {
			case err := <-ended:
				if err != nil || read != a.inputs {
					t.Errorf("the export ended with %v after %d pictures, want %d", err, read, a.inputs)
				}
				return
			case client.next <- struct{}{}:
			}
		}
	})
}

// TestExportOfLargeInputs exports inputs of which only a few fit in an answer. Each is exported once. If not even one fits, the export fails.
func TestExportOfLargeInputs(t *testing.T) {
	for _, most := range []int{3, 1} {
		a := &album{inputs: 150, most: most}
		var out bytes.Buffer
		if err := ExportApp(t.Context(), a, "app", &out); err != nil {
			t.Fatal(err)
		}
		z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := fs.ReadFile(z, "inputs.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
			if want := fmt.Sprintf(`"id":"%d"`, i); !strings.Contains(line, want) {
				t.Fatalf("line %d is %s, want %s", i, line, want)
			}
		}
		if n := bytes.Count(lines, []byte("\n")); n != a.inputs {
			t.Errorf("%d lines, want %d", n, a.inputs)
		}
	}
	var refused *StatusError
	if err := ExportApp(t.Context(), &album{inputs: 150, most: -1}, "app", io.Discard); !errors.As(err, &refused) || refused.HTTP != 400 {
		t.Errorf("an input that fits in no answer: %v", err)
	}
}

// TestExportEndsWithClient cancels the context of an export, and makes a write fail. Both end the export.
func TestExportEndsWithClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &album{inputs: 50}
	cancel()
	if err := ExportApp(ctx, a, "app", io.Discard); !errors.Is(err, context.Canceled) || len(a.read) > 0 {
		t.Errorf("an export without a client = %v, after %d pictures", err, len(a.read))
	}
	client := &slowReader{next: make(chan struct{})}
	close(client.next)
	if err := ExportApp(t.Context(), a, "app", client); !errors.Is(err, io.ErrClosedPipe) || len(a.read) > 1 {
		t.Errorf("an export to a client that hangs up = %v, after %d pictures", err, len(a.read))
	}
}
