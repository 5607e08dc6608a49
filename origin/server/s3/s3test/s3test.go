// Package s3test runs an S3 server for tests: versitygw, with a folder behind it.
//
//	test ──HTTP──▶ versitygw ──▶ FOLDER/bucket/0/blobs/…
//
// Tests stop and start the server to simulate an outage, and change its files to simulate damage. Without the program the tests are skipped.
package s3test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Bucket is the name of the bucket that Start creates.
const Bucket = "sightline"

// install names the missing program and the command that installs it.
const install = "versitygw is not installed: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// Server is an S3 server with one empty bucket. One goroutine uses it.
type Server struct {
	URL               string // of the bucket
	AccessKey, Secret string // of its only user, at random
	Folder            string // the objects of the bucket, as files with their names

	t       testing.TB
	program string
	root    string
	address string
	process *exec.Cmd // nil: stopped
	log     bytes.Buffer
}

// New starts a server, which ends with the test. If the program versitygw is neither in PATH nor in GOPATH/bin, New skips the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, program: find(t), root: t.TempDir(), AccessKey: random(t), Secret: random(t)}
	s.Folder = filepath.Join(s.root, Bucket)
	l, err := system.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + s.address + "/" + Bucket
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("log of versitygw:\n%s", s.log.String())
		}
	})
	s.Start()
	client, err := minio.New(s.address, &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.Secret, "")})
	if err == nil {
		err = client.MakeBucket(t.Context(), Bucket, minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatalf("create the bucket: %v", err)
	}
	return s
}

func find(t testing.TB) string {
	t.Helper()
	const name = "versitygw"
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOPATH").Output()
	if err == nil {
		if path, err := exec.LookPath(filepath.Join(strings.TrimSpace(string(out)), "bin", name)); err == nil {
			return path
		}
	}
	t.Skip(install)
	return ""
}

func random(t testing.TB) string {
	t.Helper()
	var b [16]byte
	if _, err := io.ReadFull(system.Random, b[:]); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b[:])
}

// Start starts a stopped server at the same address with the same objects. It returns when the server accepts connections.
func (s *Server) Start() {
	s.t.Helper()
	s.process = exec.Command(s.program, "--quiet", "--keep-alive", "--port", s.address, "posix", s.root)
	s.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.Secret)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		var c net.Conn
		c, err := system.Dial(ctx, "tcp", s.address, nil)
		if err == nil {
			_ = c.Close()
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("versitygw does not listen at %s: %v", s.address, err)
		}
		system.Pause(ctx, 20*time.Millisecond)
	}
}

// Stop kills the server and waits for its end. The objects stay. A stopped server stays stopped.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait() // the signal is its error
	s.process = nil
}

// Process returns the process of a running server.
func (s *Server) Process() *os.Process { return s.process.Process }
