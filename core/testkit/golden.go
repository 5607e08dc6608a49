package testkit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Golden is a list of named encodings that a file stores.
type Golden struct {
	names    []string
	data     map[string][]byte
	reencode map[string]func([]byte) ([]byte, error)
}

// Add adds an encoding. reencode decodes its argument and returns the value encoded again.
func (g *Golden) Add(name string, data []byte, reencode func([]byte) ([]byte, error)) {
	if g.data == nil {
		g.data, g.reencode = map[string][]byte{}, map[string]func([]byte) ([]byte, error){}
	}
	g.names = append(g.names, name)
	g.data[name], g.reencode[name] = data, reencode
}

// Check compares the encodings with those in a file, and checks that reencode returns the file's bytes. With update it writes the file.
func (g *Golden) Check(t *testing.T, path string, update bool) {
	t.Helper()
	if update {
		var b strings.Builder
		for _, name := range g.names {
			fmt.Fprintf(&b, "%s\t%x\n", name, g.data[name])
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for line := range strings.Lines(string(file)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if want[name], err = hex.DecodeString(digits); err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
	}
	defer func() {
		if t.Failed() {
			t.Log("Stored and sent bytes must stay readable. If only a field or a kind was added, go test -run Golden -update writes", path)
		}
	}()
	if len(want) != len(g.names) {
		t.Errorf("%s has %d encodings, want %d", path, len(want), len(g.names))
	}
	for _, name := range g.names {
		if !bytes.Equal(g.data[name], want[name]) {
			t.Errorf("%s is encoded\n%x, want\n%x", name, g.data[name], want[name])
		}
		if again, err := g.reencode[name](want[name]); err != nil || !bytes.Equal(again, want[name]) {
			t.Errorf("%s is read and written again as\n%x, %v, want\n%x", name, again, err, want[name])
		}
	}
}
