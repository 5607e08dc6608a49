package httpd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
)

// watcher answers when its client has disconnected, or when end is closed.
type watcher struct {
	echo
	began, canceled chan struct{}
	end             chan struct{}
}

func (h *watcher) Serve(ctx context.Context, r *api.Request) api.Response {
	ctx, stop := r.Watch(ctx)
	defer stop()
	h.began <- struct{}{}
	select {
	case <-ctx.Done():
		h.canceled <- struct{}{}
	case <-h.end:
	}
	return h.echo.Serve(ctx, r)
}

// TestWatchedClients makes clients disconnect during a call, with and without another request behind it. The context of the call ends. A
// client that stays gets its answers.
func TestWatchedClients(t *testing.T) {
	h := &watcher{began: make(chan struct{}, 10), canceled: make(chan struct{}, 10), end: make(chan struct{})}
	_, address := start(t, options(h))
	dial := func(requests int) net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, strings.Repeat(get, requests))
		<-h.began
		return c
	}
	for _, requests := range []int{1, 2} {
		_ = dial(requests).Close()
		<-h.canceled
	}
	c := dial(2)
	defer c.Close()
	close(h.end)
	answers := bufio.NewReader(c)
	for range 2 {
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
			t.Errorf("a client that stays gets %s, %v", res.Status, err)
		}
	}
}
