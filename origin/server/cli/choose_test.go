package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// TestChosenKey finds a key by the text, the ID or the start of the ID that the operator enters.
func TestChosenKey(t *testing.T) {
	const text = "0123456789abcdef0123456789abcdef"
	hash := auth.HashKey(text)
	id := auth.ByKey(hash)
	keys := []control.Key{{ID: "0011223344556677"}, {ID: id}, {ID: "0011223399999999"}}
	for argument, want := range map[string]string{
		text: id, strings.ToUpper(text): id, id: id, id[:8]: id, " " + id[:9] + "\n": id,
		"00112233": "", "001122334": "0011223344556677", "0011223": "", id + "0": "", "": "",
	} {
		if got, err := chosenKey(keys, argument); got.ID != want || (err == nil) != (want != "") {
			t.Errorf("chosenKey(%q) = %q, %v, want %q", argument, got.ID, err, want)
		}
	}
}

// TestConfirm deletes nothing unless the user types the name.
func TestConfirm(t *testing.T) {
	app := control.App{ID: "1", Name: "Birds of 2026"}
	for typed, want := range map[string]bool{"Birds of 2026\n": true, " Birds of 2026": true, "birds of 2026\n": false, "\n": false, "": false} {
		var prompt strings.Builder
		c := &FolderCommand{Env: &server.Env{Stdin: strings.NewReader(typed), Stderr: &prompt}, dir: "/data of mine"}
		if err := c.confirm(t.Context(), "sightline", app, register.Contents{Inputs: 1}); (err == nil) != want {
			t.Errorf("typed %q: %v", typed, err)
		}
		if !strings.Contains(prompt.String(), "1 input, 0 concepts") || !strings.Contains(prompt.String(), "--app 1 --data '/data of mine'") {
			t.Errorf("asked %s", prompt.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, w := io.Pipe()
	defer w.Close()
	c := &FolderCommand{Env: &server.Env{Stdin: r, Stderr: io.Discard}}
	if err := c.confirm(ctx, "sightline", app, register.Contents{}); err == nil {
		t.Error("a command that was stopped deletes")
	}
}
