package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/proof"
)

// tab is a tab of a Chromium, which keeps a copy of an application. It is asked by one goroutine at a time.
type tab struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log bytes.Buffer
}

// openTab starts a browser with pages of an origin.
func openTab(t testing.TB, node, chromium, origin string) *tab {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, "tab.js")
	x := &tab{t: t, cmd: cmd}
	cmd.Dir = filepath.Join(proof.Root(t), "web", "runtime", "test", "tab")
	cmd.Env = append(os.Environ(), "ORIGIN="+origin, "CHROMIUM="+chromium)
	cmd.Stderr = &x.log
	var err error
	if x.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	x.out = bufio.NewReaderSize(out, 1<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = x.in.Close()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the tab said\n%s", x.log.String())
		}
	})
	x.heard(nil)
	return x
}

// heard reads an answer.
func (x *tab) heard(out any) {
	x.t.Helper()
	late := time.AfterFunc(patience, func() { _ = x.cmd.Process.Kill() })
	line, err := x.out.ReadBytes('\n')
	late.Stop()
	var answer struct {
		OK      json.RawMessage
		Failure string
	}
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err == nil && answer.Failure != "" {
		err = fmt.Errorf("%s", answer.Failure)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(answer.OK, out)
	}
	if err != nil {
		x.t.Fatalf("the tab: %v in %.300q", err, line)
	}
}

// do has the tab do something.
func (x *tab) do(name string, with object, out any) {
	x.t.Helper()
	said := object{"do": name}
	for k, v := range with {
		said[k] = v
	}
	line, err := json.Marshal(said)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.in.Write(append(line, '\n')); err != nil {
		x.t.Fatal(err)
	}
	x.heard(out)
}

// ask makes a call of the interface in the page.
func (x *tab) ask(method, path string, body any) (int, http.Header, object, error) {
	x.t.Helper()
	var got struct {
		Status  int
		Headers map[string]string
		Body    object
	}
	with := object{"method": method, "path": path}
	if body != nil {
		with["body"] = body
	}
	x.do("call", with, &got)
	h := http.Header{}
	for k, v := range got.Headers {
		h.Set(k, v)
	}
	return got.Status, h, got.Body, nil
}
