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

// repeat runs once n times after a warm-up. It returns the mean CPU time of a run in
// milliseconds, user and system time of this thread.
func repeat(n int, once func() error) (float64, error) {
	if _, err := meanCPUTime(warmUps, once); err != nil {
		return 0, err
	}
	return meanCPUTime(n, once)
}

// meanCPUTime measures like repeat, without a warm-up.
func meanCPUTime(n int, once func() error) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	for range n {
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

// program is a process that answers commands, with one line of JSON for each. The first command starts it.
type program struct {
	command []string
	dir     string // working folder
	install string // instructions to install its peer
	browser bool   // it is a browser, whose sandbox cannot trap CPUID
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func (p *program) start() (err error) {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Dir, cmd.Stderr = p.dir, os.Stderr
	if !p.browser {
		cmd.Env = append(os.Environ(), masked...)
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	if err = cmd.Start(); err == nil {
		p.cmd = cmd
	}
	return err
}

func (p *program) stop() {
	if p.cmd != nil {
		p.in.Close()
		_ = p.cmd.Wait() // the answers reported its errors
	}
}

// answer is the result of a command: the mean time of a run in milliseconds, and the recall of a search.
type answer struct {
	CPU, Recall float64
	Error       string
}

// ask sends one command and returns its answer.
func (p *program) ask(command map[string]any) (a answer, err error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return a, err
		}
	}
	line, err := json.Marshal(command)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	got, err := p.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("no answer from %s (%s installs the peer): %w", p.command[0], p.install, err)
	}
	if err := json.Unmarshal(got, &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// time returns the measure of a command. The measure adds the number of repetitions to the command.
func (p *program) time(command map[string]any) measure {
	return func(n int) (float64, error) {
		command["n"] = n
		a, err := p.ask(command)
		return a.CPU, err
	}
}
