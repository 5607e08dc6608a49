package conformance

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/web/process"
)

// TestOnlyLoopback checks that loopback.cjs blocks all connections except to loopback, for each way to connect in Node.
func TestOnlyLoopback(t *testing.T) {
	process.Need(t, "node")
	for script, reaches := range map[string]bool{
		`require("http").get("http://127.0.0.1:9/").on("error", () => {})`:      true,
		`require("http").get("http://localhost:9/").on("error", () => {})`:      true,
		`require("http").get("http://192.0.2.1/").on("error", () => {})`:        false,
		`require("https").get("https://elsewhere.test/").on("error", () => {})`: false,
		`require("net").connect(80, "elsewhere.test").on("error", () => {})`:    false,
		`fetch("http://elsewhere.test/").catch(() => {})`:                       false,
	} {
		out, err := exec.Command("node", "--require", "./loopback.cjs", "--eval", script).CombinedOutput()
		if refused := strings.Contains(string(out), "harness: a connection to"); reaches != (err == nil) || reaches == refused {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
