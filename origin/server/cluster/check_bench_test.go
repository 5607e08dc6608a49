package cluster

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
)

// BenchmarkChecks compares checked reads at the primary with linearizable gets of the same etcd of three members. Both take turns.
func BenchmarkChecks(b *testing.B) {
	peers := map[string]identity.Address{}
	for i, address := range clustertest.Addresses(b, 3) {
		peers[fmt.Sprint("n", i)] = address
	}
	var (
		starting sync.WaitGroup
		mu       sync.Mutex
		all      []*member.Member
	)
	for name, address := range peers {
		o := member.Options{Data: b.TempDir(), Name: name, Address: address, Peers: peers, Cluster: "c", Log: slog.New(slog.DiscardHandler)}
		starting.Go(func() {
			m, err := member.Start(o)
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			all = append(all, m)
			mu.Unlock()
			b.Cleanup(func() {
				if err := m.Close(); err != nil {
					b.Error(err)
				}
			})
		})
	}
	starting.Wait()
	var primary *member.Member
	clustertest.Until(b, "a leader", func() bool {
		i := slices.IndexFunc(all, func(m *member.Member) bool {
			leads, _ := m.Leads()
			return leads
		})
		if i >= 0 {
			primary = all[i]
		}
		return i >= 0
	})
	if _, err := primary.Client.Put(b.Context(), string(channel.Primary), "n/1"); err != nil {
		b.Fatal(err)
	}
	c := &Cluster{member: primary}
	c.check.get = c.claimed
	checked := func() error {
		_, err := c.check.newest(b.Context())
		return err
	}
	bare := func() error {
		_, err := primary.Client.Get(b.Context(), string(channel.Primary))
		return err
	}
	for _, readers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			var took [2]time.Duration
			var each [2][]time.Duration
			rounds := 0
			for b.Loop() {
				rounds++
				for i, do := range []func() error{checked, bare} {
					began := time.Now()
					each[i] = append(each[i], readAtOnce(b, readers, do)...)
					took[i] += time.Since(began)
				}
			}
			reads := float64(rounds * readers * readsEach)
			for i, name := range []string{"checked", "bare"} {
				slices.Sort(each[i])
				b.ReportMetric(reads/took[i].Seconds(), name+"/s")
				b.ReportMetric(float64(each[i][len(each[i])*99/100].Microseconds())/1000, name+"-p99-ms")
			}
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
		})
	}
}

// readsEach is the number of reads of one reader in a turn.
const readsEach = 50

// readAtOnce reads with several readers at once, and returns the time of each read.
func readAtOnce(b *testing.B, readers int, do func() error) (all []time.Duration) {
	b.Helper()
	var (
		work sync.WaitGroup
		mu   sync.Mutex
	)
	for range readers {
		work.Go(func() {
			took := make([]time.Duration, 0, readsEach)
			for range readsEach {
				began := time.Now()
				if err := do(); err != nil {
					b.Error(err)
				}
				took = append(took, time.Since(began))
			}
			mu.Lock()
			all = append(all, took...)
			mu.Unlock()
		})
	}
	work.Wait()
	return all
}
