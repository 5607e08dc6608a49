package httpd

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

// A page and a drawing, each with scripts that mark it.
const (
	hostilePage = `<!doctype html><title>page</title><script>document.title = 'script ran'</script>` +
		`<body onload="document.title = 'script ran'"><img src="data:," onerror="document.title = 'script ran'">`
	hostileDrawing = `<svg xmlns="http://www.w3.org/2000/svg" onload="this.id = 'script ran'"><script>document.documentElement.id = 'script ran'</script></svg>`
)

// TestHostedVideoRunsNoScript opens hosted videos in a browser. The bytes of each video are a page or a drawing. It also opens these bytes
// with their own content type, under the policy of videos. No script runs. Without the policy it does.
func TestHostedVideoRunsNoScript(t *testing.T) {
	testkit.Nightly(t)
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	runs := func(url string) bool {
		t.Helper()
		dom, err := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
			"--virtual-time-budget=1000", "--dump-dom", url).Output()
		if err != nil || len(dom) == 0 {
			t.Fatalf("%s: %q, %v", url, dom, err)
		}
		return strings.Contains(string(dom), `"script ran"`) || strings.Contains(string(dom), ">script ran<")
	}
	for contentType, body := range map[string]string{"text/html": hostilePage, "image/svg+xml": hostileDrawing} {
		o := options(&echo{})
		o.Hosted = pictures{p: Picture{ContentType: "video/mp4"}, b: body}.Open
		if _, address := start(t, o); runs("http://" + address + "/hosted/0123456789abcdef0123456789abcdef") {
			t.Errorf("a script runs in a hosted video that is %s", contentType)
		}
		for _, policy := range []string{"", videoPolicy} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType)
				w.Header().Set("Content-Security-Policy", policy)
				_, _ = w.Write([]byte(body)) // to a browser that waits
			}))
			if ran := runs(server.URL); ran != (policy == "") {
				t.Errorf("%s under %q: script ran: %v", contentType, policy, ran)
			}
			server.Close()
		}
	}
}
