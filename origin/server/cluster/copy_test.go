package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
)

// source is a node with a checkpoint.
type source struct {
	t     *testing.T
	files map[string]string

	mu      sync.Mutex
	damaged string         // name of the file that arrives with another byte
	sent    map[string]int // by name of the file
	dropped int            // checkpoints that were deleted
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := strings.TrimPrefix(r.URL.Path, pathCheckpoint+"/id/"); r.Method {
	case http.MethodPost:
		cp := checkpoint{ID: "id", Revision: 7}
		for name, content := range s.files {
			sum := sha256.Sum256([]byte(content))
			cp.Files = append(cp.Files, file{name, int64(len(content)), hex.EncodeToString(sum[:])})
		}
		_ = json.NewEncoder(w).Encode(cp)
	case http.MethodDelete:
		s.dropped++
	case http.MethodGet:
		s.sent[name]++
		content := s.files[name]
		if name == s.damaged {
			content = "x" + content[1:]
		}
		_, _ = w.Write([]byte(content))
	}
}

// TestCopyResumes: a file that arrives damaged is refused. The next copy fetches only that file. Meanwhile the store stays as it is.
func TestCopyResumes(t *testing.T) {
	s := &source{t: t, files: map[string]string{}, sent: map[string]int{}, damaged: "000007.sst"}
	for i := range 20 {
		s.files[fmt.Sprintf("%06d.sst", i)] = strings.Repeat(fmt.Sprint(i), 1000)
	}
	c, peer := fakeCluster(t, s)
	before := filepath.Join(c.o.Data, storeDir, "before")
	if err := os.MkdirAll(filepath.Dir(before), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(before, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.copyFrom(t.Context(), peer); err == nil || !strings.Contains(err.Error(), "000007.sst arrived damaged") {
		t.Fatalf("copyFrom = %v", err)
	}
	if _, err := os.Stat(before); err != nil {
		t.Errorf("the store after a copy that failed: %v", err)
	}
	s.damaged = ""
	sent := 0
	for name, n := range s.sent {
		if name != "000007.sst" {
			sent += n
		}
	}
	c.copies = true
	c.file.Peers = []identity.Node{peer}
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, n := range s.sent {
		again += n
	}
	if s.sent["000007.sst"] != 2 || again != len(s.files)+1 {
		t.Errorf("%d files were sent in the first copy, and %d in both; the damaged one %d times", sent, again, s.sent["000007.sst"])
	}
	if s.dropped != 2 {
		t.Errorf("%d checkpoints were deleted at their node", s.dropped)
	}
	for name, content := range s.files {
		if b, err := os.ReadFile(filepath.Join(c.o.Data, storeDir, name)); err != nil || string(b) != content {
			t.Errorf("file %s: %v", name, err)
		}
	}
	if _, err := os.Stat(before); err == nil {
		t.Error("the new store has a file of the one before")
	}
	if err := c.Prepare(t.Context()); err != nil || s.dropped != 2 {
		t.Errorf("a node that needs no copy: %v, %d checkpoints", err, s.dropped)
	}
}

// TestCopyKeepsAStore: at each moment of a copy the folder has the whole store from before, the whole new one or none, which is copied again.
func TestCopyKeepsAStore(t *testing.T) {
	s := &source{t: t, files: map[string]string{"000001.sst": "new"}, sent: map[string]int{}}
	c, peer := fakeCluster(t, s)
	store := filepath.Join(c.o.Data, storeDir)
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	const files = 3000
	for i := range files {
		if err := os.WriteFile(filepath.Join(store, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- c.copyFrom(t.Context(), peer) }()
	for {
		dir, err := os.Open(store)
		if err == nil {
			names, err := dir.Readdirnames(-1)
			before, _ := os.Stat(store)
			opened, _ := dir.Stat()
			if n := len(names); err == nil && n != files && n != 1 && before != nil && os.SameFile(before, opened) {
				t.Errorf("the store has %d of %d files", n, files)
			}
			if err := dir.Close(); err != nil {
				t.Error(err)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if names, err := os.ReadDir(c.o.Data); err != nil || len(names) != 1 {
				t.Errorf("after the copy the folder has %v, %v", names, err)
			}
			return
		case <-time.After(time.Millisecond): // the removal of so many files takes far longer
			if t.Failed() {
				<-done
				return
			}
		}
	}
}

// TestCheckpointNames: a checkpoint with a name that leads out of its folder is refused, by the node that copies and by the one that sends.
func TestCheckpointNames(t *testing.T) {
	for _, name := range []string{"../../cluster.json", "a/b", "..", "/etc/passwd", ""} {
		s := &source{t: t, files: map[string]string{name: "x"}, sent: map[string]int{}}
		c, peer := fakeCluster(t, s)
		if err := c.copyFrom(t.Context(), peer); err == nil || !strings.Contains(err.Error(), "the checkpoint has a file") || len(s.sent) != 0 {
			t.Errorf("copy of %q: %v, %v", name, err, s.sent)
		}
	}
	c, _ := fakeCluster(t, http.NotFoundHandler())
	secret := filepath.Join(c.o.Data, checkpointsDir, "id", "x")
	if err := os.MkdirAll(filepath.Dir(secret), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{secret, filepath.Join(c.o.Data, "cluster.json")} {
		if err := os.WriteFile(name, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]int{
		"/checkpoint/id/x":                      http.StatusOK,
		"/checkpoint/id/..%2F..%2Fcluster.json": http.StatusNotFound,
		"/checkpoint/..%2F/cluster.json":        http.StatusNotFound,
		"/checkpoint/..%2F../cluster.json":      http.StatusNotFound,
		"/checkpoint/id/%2Fetc%2Fpasswd":        http.StatusNotFound,
		"/checkpoint/.%2E/cluster.json":         http.StatusNotFound,
		"/checkpoint/id/..":                     http.StatusTemporaryRedirect,
	} {
		if got := c.orderOf(t, http.MethodGet, target); got != want {
			t.Errorf("GET %s = %d, want %d", target, got, want)
		}
	}
	for _, target := range []string{"/checkpoint/..%2Fcheckpoints", "/checkpoint/.%2E", "/checkpoint/."} {
		c.orderOf(t, http.MethodDelete, target)
		if _, err := os.Stat(secret); err != nil {
			t.Fatalf("DELETE %s: %v", target, err)
		}
	}
}
