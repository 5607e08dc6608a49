package cluster

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
)

// TestEtcdSize writes records of 4.8 KB through the channel, with two nodes that follow. The primary compacts etcd meanwhile: its file stays below
// 3 GB, and etcd raises no alarm. It runs under make soak; RECORDS is their number.
func TestEtcdSize(t *testing.T) {
	if !testkit.Soaking() {
		t.Skip("it writes a million records: run it with make soak")
	}
	records := int64(1_000_000)
	if s := os.Getenv("RECORDS"); s != "" {
		var err error
		if records, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	const (
		writers   = 16
		valueSize = 4800
		keys      = 1000
		bar       = 3 << 30
	)
	nodes := three(t)
	var (
		work    sync.WaitGroup
		left    atomic.Int64
		largest int64
		began   = time.Now()
		done    = make(chan bool)
		file    = func(n *node) int64 {
			info, err := os.Stat(filepath.Join(n.dir, member.Dir, "member", "snap", "db"))
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
	)
	left.Store(records)
	for w := range writers {
		rng := rand.NewChaCha8([32]byte{byte(w)})
		work.Go(func() {
			value := make([]byte, valueSize)
			for left.Add(-1) >= 0 {
				_, _ = rng.Read(value)
				var b kv.Batch
				b.Put([]byte("key"+strconv.FormatUint(rng.Uint64()%keys, 10)), value)
				err := kv.ErrFollows
				for i := 0; errors.Is(err, kv.ErrFollows); i++ {
					err = nodes[i%len(nodes)].commit(&b)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() {
		work.Wait()
		close(done)
	}()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Second):
		}
		for _, n := range nodes {
			largest = max(largest, file(n))
		}
	}
	putAt(t, "last", nodes...)
	for _, n := range nodes {
		clustertest.Until(t, "the last record", func() bool { return n.has("last") })
	}
	p := leads(t, nodes...)
	alarms, err := p.cluster.client().AlarmList(t.Context())
	if err != nil || len(alarms.Alarms) > 0 {
		t.Errorf("alarms %v, %v", alarms, err)
	}
	if largest > bar {
		t.Errorf("etcd's file has %d bytes", largest)
	}
	progress := p.cluster.driving().Progress()
	t.Logf("%d batches in %d records, %.0f MB of records in %v: etcd's file had %.0f MB at most, at the end %.0f MB",
		records, progress.Position.Version, float64(progress.Bytes)/1e6, time.Since(began).Round(time.Second), float64(largest)/1e6, float64(file(p))/1e6)
}
