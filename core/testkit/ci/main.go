// Command ci runs tests and reads their events, for make and .ci/run:
//
//	go run ./core/testkit/ci test ARGUMENT...     runs go test, and prints a line for each package and the output of each failed test
//	go run ./core/testkit/ci retry                runs each test that failed in the last test again, alone
//	go run ./core/testkit/ci times [FILE [COUNT]] prints the seconds of packages and tests
//	go run ./core/testkit/ci concurrent           prints the packages that the race detector tests
//
// An event is a line of `go test -json`. The command test stores all events in .cache/test.json, which retry and times read, and what it
// prints in .cache/test.txt.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// The files of the last run of tests.
const (
	eventsFile  = ".cache/test.json"
	printedFile = ".cache/test.txt"
)

// errFailed is the error for tests that failed. The command has printed them.
var errFailed = errors.New("tests failed")

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	commands := map[string]func(args []string) error{"test": test, "retry": retryAll, "times": printTimes, "concurrent": printConcurrent}
	run, ok := commands[os.Args[1]]
	if !ok {
		usage()
	}
	if err := run(os.Args[2:]); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: ci test|retry|times|concurrent [ARGUMENT...]")
	os.Exit(2)
}

// test runs go test with the arguments. `make check` vets, so the tests do not.
func test(args []string) error {
	if err := os.MkdirAll(filepath.Dir(eventsFile), 0o755); err != nil {
		return err
	}
	stored, err := os.Create(eventsFile)
	if err != nil {
		return err
	}
	defer stored.Close()
	printed, err := os.Create(printedFile)
	if err != nil {
		return err
	}
	defer printed.Close()
	cmd := exec.Command("go", append([]string{"test", "-json", "-vet=off"}, args...)...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = report(io.TeeReader(events, stored), io.MultiWriter(os.Stdout, printed))
	return errors.Join(err, failed(cmd.Wait()))
}

// failed returns errFailed for a command that ended with an exit code, and other errors as they are.
func failed(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return errFailed
	}
	return err
}

func retryAll([]string) error {
	events, err := os.Open(eventsFile)
	if err != nil {
		return err
	}
	defer events.Close()
	return retry(events, os.Stdout, func(test name) error {
		args := []string{"test", "-vet=off", "-count=1", "-timeout", "15m"}
		if test.test != "" {
			args = append(args, "-run", pattern(test.test))
		}
		cmd := exec.Command("go", append(args, test.pkg)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return failed(cmd.Run())
	})
}

func printTimes(args []string) error {
	file, count := eventsFile, 0
	if len(args) > 0 {
		file = args[0]
	}
	if len(args) > 1 {
		var err error
		if count, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	events, err := os.Open(file)
	if err != nil {
		return err
	}
	defer events.Close()
	module, err := exec.Command("go", "list", "-m").Output()
	if err != nil {
		return err
	}
	return times(events, os.Stdout, strings.TrimSpace(string(module)), count)
}
