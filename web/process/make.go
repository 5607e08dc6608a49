//go:build unix

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// makeState holds the targets that this process has made.
var makeState struct {
	sync.Mutex
	targets map[string]bool
}

// Make makes a target of the Makefile, once in each test process, so that tests run the files that users run. A lock file lets only one
// process run make at a time. make does nothing if the target is up to date, as in make test.
func Make(t testing.TB, target string) {
	t.Helper()
	makeState.Lock()
	defer makeState.Unlock()
	if makeState.targets[target] {
		return
	}
	root := testkit.Root(t)
	lock := lockFile(t, filepath.Join(root, ".cache", "make.lock"))
	defer lock.Close()
	cmd := exec.Command("make", "--no-print-directory", target)
	cmd.Dir = root
	// The variables of an outer make apply to the outer targets only.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	if makeState.targets == nil {
		makeState.targets = map[string]bool{}
	}
	makeState.targets[target] = true
	watch(t, root)
}

// watch calls Stat for every file that make may read. If one of the files changes, go test then runs the test again instead of using its
// cached result, although the test's package does not import the file.
func watch(t testing.TB, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "node_modules" || name == "dist" || name == "bin" || strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lockFile opens or creates a file, and locks it. It waits while another process has the lock. Closing the file unlocks it.
func lockFile(t testing.TB, path string) *os.File {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return lock
}
