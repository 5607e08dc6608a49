package clustertest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// patience is the time after which a condition counts as failed. It is long, because other tests may use the machine.
const patience = 5 * time.Minute

// Until waits until ready returns true. etcd has its own clock and sockets, so a test waits for conditions.
func Until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := system.Now().Add(patience); !ready(); system.Pause(context.Background(), 5*time.Millisecond) {
		if system.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// The addresses are below the ports that the system gives to connections, which could take one before its node listens.
const (
	firstPort = 10_000
	ports     = 20_000
)

// Addresses returns n addresses of nodes on loopback whose three ports are free.
func Addresses(t testing.TB, n int) (all []identity.Address) {
	t.Helper()
	var used []int
	rnd := rand.New(rand.NewPCG(uint64(system.Now().UnixNano()), 0))
	for len(all) < n {
		port := firstPort + rnd.IntN(ports)
		l, err := system.Listen(t.Context(), address(port).String())
		if err != nil {
			continue // in use
		}
		free := !slices.ContainsFunc(used, func(p int) bool { return p-2 <= port && port <= p+2 })
		for after := 1; after <= 2 && free; after++ {
			next, err := system.Listen(t.Context(), address(port+after).String())
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

func address(port int) identity.Address {
	return identity.Address{Host: "127.0.0.1", Port: uint16(port)}
}
