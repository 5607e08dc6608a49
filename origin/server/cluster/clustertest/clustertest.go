package clustertest

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// patience is the time after which a condition counts as failed. It is long, because other tests may use the machine.
const patience = 2 * time.Minute

// Until waits until ready returns true. etcd has its own clock and sockets, so a test waits for conditions.
func Until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := system.Now().Add(patience); !ready(); system.Pause(context.Background(), 5*time.Millisecond) {
		if system.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// Addresses returns n addresses of nodes on loopback whose three ports are free.
func Addresses(t testing.TB, n int) (all []string) {
	t.Helper()
	var used []int
	for len(all) < n {
		l, err := system.Listen(t.Context(), address(0))
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		free := !slices.ContainsFunc(used, func(p int) bool { return p-2 <= port && port <= p+2 })
		for after := 1; after <= 2 && free; after++ {
			next, err := system.Listen(t.Context(), address(port+after))
			if free = err == nil; free {
				free = next.Close() == nil
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if free {
			used, all = append(used, port), append(all, address(port))
		}
	}
	return all
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
