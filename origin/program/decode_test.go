package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// TestDecodeVideo runs the hidden command with an invalid standard input, and checks that the help does not list it.
func TestDecodeVideo(t *testing.T) {
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), New(), server.Env{Args: []string{video.Command}, Stdin: strings.NewReader("rubbish"), Stdout: &out, Stderr: &errs, Environ: func() []string { return nil }})
	if want := "sightline decode-video: setup: "; code != server.ExitFailed || out.Len() > 0 || !strings.HasPrefix(errs.String(), want) {
		t.Errorf("code %d, output %q, errors %q, want %q", code, out.String(), errs.String(), want)
	}
	help := bytes.Buffer{}
	if code := cli.Run(t.Context(), New(), server.Env{Args: []string{"--help"}, Stdout: &help, Stderr: &errs, Environ: func() []string { return nil }}); code != server.ExitOK || strings.Contains(help.String(), video.Command) {
		t.Errorf("code %d: the help names it:\n%s", code, help.String())
	}
}
