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

// repeat runs once n times after a warm-up and returns the CPU time of each run in
// milliseconds, user and system of this thread.
func repeat(n int, once func() error) ([]float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	times := make([]float64, 0, n)
	for i := -warmUps; i < n; i++ {
		start := threadTime()
		if err := once(); err != nil {
			return nil, err
		}
		if i >= 0 {
			times = append(times, float64(threadTime()-start)/float64(time.Millisecond))
		}
	}
	return times, nil
}

func threadTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		panic(err) // the kernel knows the calling thread
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// node is the process that runs peer.mjs.
type node struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startNode() (*node, error) {
	cmd := exec.Command("node", "peer.mjs")
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

// ask sends one command and returns the peer's times in milliseconds.
func (p *node) ask(command map[string]any) ([]float64, error) {
	line, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("no answer from node (npm ci in models/peers installs the peers): %w", err)
	}
	var a struct {
		CPU   []float64
		Error string
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.CPU, nil
}
