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

	"github.com/sightline-dev/sightline/core/testkit"
)

// tab is a tab of a Chromium browser that keeps a replica of an application. Only one goroutine at a time may use it.
type tab struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log bytes.Buffer
}

// openTab starts a browser with the pages of an origin.
func openTab(t testing.TB, node, chromium, origin string) *tab {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, "tab.js")
	cmd.Dir = filepath.Join(testkit.Root(t), "web", "runtime", "test", "tab")
	cmd.Env = append(os.Environ(), "ORIGIN="+origin, "CHROMIUM="+chromium)
	return startTab(t, cmd)
}

// startTab starts a script that takes the commands of a tab, and waits until it is ready.
func startTab(t testing.TB, cmd *exec.Cmd) *tab {
	t.Helper()
	x := &tab{t: t, cmd: cmd}
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
	if err := x.readAnswer(nil); err != nil {
		t.Fatal(err)
	}
	return x
}

// readAnswer decodes one line of the script's output into out, or returns the failure that it reports.
func (x *tab) readAnswer(out any) error {
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
		return fmt.Errorf("the tab: %w in %.300q", err, line)
	}
	return nil
}

// do runs a command in the tab and fails the test on an error.
func (x *tab) do(name string, with object, out any) {
	x.t.Helper()
	if err := x.try(name, with, out); err != nil {
		x.t.Fatal(err)
	}
}

// try is like do, and returns the error.
func (x *tab) try(name string, with object, out any) error {
	call := object{"do": name}
	for k, v := range with {
		call[k] = v
	}
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	if _, err := x.in.Write(append(line, '\n')); err != nil {
		return err
	}
	return x.readAnswer(out)
}

// ask makes an API call in the page.
func (x *tab) ask(method, path string, body any) (int, http.Header, object, error) {
	x.t.Helper()
	status, h, out, err := x.call(method, path, body)
	if err != nil {
		x.t.Fatal(err)
	}
	return status, h, out, nil
}

// call is like ask, and returns the error if the page has ended.
func (x *tab) call(method, path string, body any) (int, http.Header, object, error) {
	var got struct {
		Status  int
		Headers map[string]string
		Body    object
	}
	with := object{"method": method, "path": path}
	if body != nil {
		with["body"] = body
	}
	if err := x.try("call", with, &got); err != nil {
		return 0, nil, nil, err
	}
	h := http.Header{}
	for k, v := range got.Headers {
		h.Set(k, v)
	}
	return got.Status, h, got.Body, nil
}
