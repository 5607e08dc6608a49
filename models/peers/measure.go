package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const warmUps = 3

// repeat runs once n times after a warm-up and returns the mean CPU time of a run in
// milliseconds, user and system of this thread.
func repeat(n int, once func() error) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var start time.Duration
	for i := -warmUps; i < n; i++ {
		if i == 0 {
			start = threadTime()
		}
		if err := once(); err != nil {
			return 0, err
		}
	}
	return float64(threadTime()-start) / float64(time.Millisecond) / float64(n), nil
}

func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err) // every kernel that Go runs on has this clock
	}
	return time.Duration(now.Nano())
}

// node is a process that runs peer.mjs or browser.mjs.
type node struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startNode(script string) (*node, error) {
	cmd := exec.Command("node", script)
	cmd.Dir, cmd.Stderr = "models/peers", os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	return &node{cmd, in, bufio.NewReader(out)}, nil
}

func (p *node) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // its exit says nothing that the answers did not
}

// ask sends one command and returns the peer's mean time of a run in milliseconds.
func (p *node) ask(command map[string]any) (float64, error) {
	line, err := json.Marshal(command)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("no answer from node (npm ci in models/peers installs the peers): %w", err)
	}
	var a struct {
		CPU   float64
		Error string
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return 0, err
	}
	if a.Error != "" {
		return 0, errors.New(a.Error)
	}
	return a.CPU, nil
}
