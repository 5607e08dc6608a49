package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/server/video"
)

// TestDecodeVideo starts the hidden command, which reads what it must do from its standard input.
func TestDecodeVideo(t *testing.T) {
	var out, errs bytes.Buffer
	code := Run(t.Context(), New(), Env{Args: []string{video.Command}, Stdin: strings.NewReader("rubbish"), Stdout: &out, Stderr: &errs, Environ: func() []string { return nil }})
	if want := "sightline decode-video: setup: "; code != ExitFailed || out.Len() > 0 || !strings.HasPrefix(errs.String(), want) {
		t.Errorf("code %d, output %q, errors %q, want %q", code, out.String(), errs.String(), want)
	}
	help := bytes.Buffer{}
	if code := Run(t.Context(), New(), Env{Args: []string{"--help"}, Stdout: &help, Stderr: &errs, Environ: func() []string { return nil }}); code != ExitOK || strings.Contains(help.String(), video.Command) {
		t.Errorf("code %d: the help names it:\n%s", code, help.String())
	}
}
