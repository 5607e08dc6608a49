package memkv_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/proof"
)

// always is slack with which a store compacts all the time.
const always = -1 << 40

// filed opens a store in files 2 and 3 of a disk. It compacts in many steps.
func filed(d *journaltest.Disk, slack int64) (*memkv.Store, error) {
	return memkv.Open(memkv.Options{Journal: memkv.NewFiled(memkv.FiledOptions{Files: d, Pair: [2]int{2, 3}, Slack: slack, Step: 1})})
}

// disk is files that lose their power.
type disk struct{ *journaltest.Disk }

func (d disk) Open() (kv.Store, error) { return filed(d.Disk, always) }

func (d disk) Crash(percent int, rng *rand.Rand) kvtest.Crasher {
	return disk{d.Disk.Crash(percent, rng)}
}

func TestFiledStore(t *testing.T) {
	for _, slack := range []int64{always, 1000, 0} {
		t.Run(fmt.Sprint(slack), func(t *testing.T) {
			kvtest.Store(t, func(t testing.TB) kv.Store {
				s, err := filed(journaltest.NewDisk(), slack)
				if err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

func TestFiledCrashes(t *testing.T) {
	kvtest.Crashes(t, proof.Seeds(t, 150, 10_000), func() kvtest.Crasher { return disk{journaltest.NewDisk()} })
}

func TestFiledCommitNothing(t *testing.T) {
	kvtest.CommitNothing(t, func() kvtest.Crasher { return disk{journaltest.NewDisk()} })
}

func TestFiledCommitOrder(t *testing.T) {
	kvtest.CommitOrder(t, proof.Seeds(t, 20, 200), func() kvtest.Crasher { return disk{journaltest.NewDisk()} })
}

// stride is how far apart the places are at which a test cuts: on slow machines not at each.
func stride() int {
	if testing.Short() {
		return 13
	}
	return 1
}

// progress is what was acknowledged, and given, at moments of a disk.
type progress struct {
	moment         int
	durable, given int64
}

// record runs a session on a store and notes, for every moment of the disk, what a crash there must
// and may keep.
func record(t testing.TB, d *journaltest.Disk, s *kvtest.Session, slack int64) []progress {
	t.Helper()
	store, err := filed(d, slack)
	if err != nil {
		t.Fatal(err)
	}
	var p kvtest.Progress
	var notes []progress
	note := func() {
		notes = append(notes, progress{d.Ops(), p.Durable.Load(), p.Given.Load()})
	}
	note()
	if err := s.Run(noted{store, note}, 0, &p); err != nil {
		t.Fatal(err)
	}
	note()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return notes
}

// noted calls note before each batch.
type noted struct {
	kv.Store
	note func()
}

func (n noted) Apply(b *kv.Batch) error {
	n.note()
	return n.Store.Apply(b)
}

func (n noted) Commit(b *kv.Batch) (func() error, error) {
	n.note()
	return n.Store.Commit(b)
}

// within are the bounds of what the disk may hold at a moment.
func within(notes []progress, moment int) (least, most int64) {
	for _, n := range notes {
		if n.moment <= moment {
			least, most = n.durable, n.given
		}
	}
	return least, most
}

// TestFiledCutAnywhere kills the program at every byte of a session that compacts over and
// over, and pulls the plug at each of its writes.
func TestFiledCutAnywhere(t *testing.T) {
	for seed := range proof.Seeds(t, 2, 100) {
		session := kvtest.NewSession(seed, 50, 60)
		d := journaltest.NewDisk()
		notes := record(t, d, session, always)
		rng := rand.New(rand.NewPCG(seed, 21))
		check := func(what string, after *journaltest.Disk, moment int) {
			t.Helper()
			store, err := filed(after, always)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, what, err)
			}
			least, most := within(notes, moment)
			if _, err := session.Check(store, least, most); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, what, err)
			}
		}
		cuts := 0
		for moment := range d.Ops() {
			for n := 0; n < max(1, d.Len(moment)); n += stride() {
				check(fmt.Sprintf("cut at byte %d of call %d", n, moment), d.At(moment, n), moment)
				cuts++
			}
			for range 3 {
				check(fmt.Sprintf("power lost at call %d", moment), d.CrashAt(moment, rng.IntN(100), rng), moment)
			}
		}
		if cuts < 5000/stride() {
			t.Errorf("seed %d: only %d cuts", seed, cuts)
		}
	}
}

// TestFiledDamage flips bits of a store that was closed: what opens all the same holds everything.
func TestFiledDamage(t *testing.T) {
	session := kvtest.NewSession(7, 40, 60)
	d := journaltest.NewDisk()
	record(t, d, session, 1<<20)
	whole := d.Bytes(2)
	rng := rand.New(rand.NewPCG(1, 22))
	refused := 0
	for at := 0; at < len(whole); at += stride() {
		after := d.At(d.Ops(), 0)
		after.Flip(2, int64(at), byte(rng.IntN(8)))
		store, err := filed(after, 1<<20)
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("byte %d flipped: %v, want ErrCorrupt", at, err)
			}
			refused++
			continue
		}
		if _, err := session.Check(store, int64(session.Len()), int64(session.Len())); err != nil {
			t.Fatalf("byte %d flipped: %v", at, err)
		}
	}
	if refused < len(whole)/stride()-64 {
		t.Errorf("%d of %d flips were refused", refused, len(whole))
	}
	for cut := 0; cut < len(whole); cut += stride() { // a file that lost what was synced
		after := d.At(d.Ops(), 0)
		after.SetBytes(2, whole[:cut])
		if _, err := filed(after, 1<<20); cut > 64 && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v, want ErrCorrupt", cut, err)
		}
	}
}

// TestFiledFaults has each call of a session fail in turn, and all after it: what was
// acknowledged is there when the files work again.
func TestFiledFaults(t *testing.T) {
	session := kvtest.NewSession(3, 50, 60)
	count := journaltest.NewDisk()
	record(t, count, session, always)
	for n := 1; n <= count.Ops(); n += stride() {
		for _, forAll := range []bool{false, true} {
			d := journaltest.NewDisk()
			d.FailAt(n, forAll)
			var p kvtest.Progress
			store, err := filed(d, always)
			if err == nil {
				if err = session.Run(store, 0, &p); err != nil && !errors.Is(err, kv.ErrFailed) {
					t.Fatalf("call %d fails: %v, want ErrFailed", n, err)
				}
			} else if !errors.Is(err, journaltest.ErrFault) {
				t.Fatalf("call %d fails: Open = %v", n, err)
			}
			d.FailAt(0, false)
			for what, after := range map[string]*journaltest.Disk{"killed": d, "power lost": d.Crash(50, rand.New(rand.NewPCG(uint64(n), 23)))} {
				store, err := filed(after, always)
				if err != nil {
					t.Fatalf("call %d failed, %s: %v", n, what, err)
				}
				if _, err := session.Check(store, p.Durable.Load(), p.Given.Load()); err != nil {
					t.Fatalf("call %d failed, %s: %v", n, what, err)
				}
			}
		}
	}
}

// TestFiledForeign opens files of something else.
func TestFiledForeign(t *testing.T) {
	d := journaltest.NewDisk()
	d.SetBytes(2, make([]byte, 65))
	if _, err := filed(d, 0); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("Open of zeros = %v, want ErrCorrupt", err)
	}
}

// TestFiledStaysSmall writes the same keys over and over.
func TestFiledStaysSmall(t *testing.T) {
	d := journaltest.NewDisk()
	s, err := filed(d, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range 2000 {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "key-%d", i%50), make([]byte, 500))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			wait, err := s.Commit(&b)
			if err == nil {
				err = wait()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		most = max(most, len(d.Bytes(2))+len(d.Bytes(3)))
	}
	if live := 50 * 510; most > 4*live+400<<10 {
		t.Errorf("the files grew to %d bytes for %d that are kept", most, live)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkReplay opens a store of what 10,000 inputs come to, about: 100,000 keys, 27 MB.
func BenchmarkReplay(b *testing.B) {
	d := journaltest.NewDisk()
	s, err := filed(d, 0)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 24))
	var size int64
	for i := range 10_000 {
		var batch kv.Batch
		for k := range 10 {
			value := make([]byte, []int{700, 700, 360, 360, 160, 160, 60, 30, 10, 0}[k])
			for at := range value {
				value[at] = byte(rng.Uint32())
			}
			batch.Put(fmt.Appendf(nil, "%c-application-%02d-%08x", "abcdefghij"[k], k, rng.Uint32()), value)
		}
		size += int64(len(batch.Bytes()))
		if err := s.Apply(&batch); err != nil {
			b.Fatal(i, err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		s, err := filed(d, 0)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
