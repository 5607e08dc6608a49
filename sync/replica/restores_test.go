package replica_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/replica"
)

// TestRestores runs a replica and its origin through random schedules of restores, disks and memories that are set back on both sides, crashes, and
// lost, cut and late answers. The memory of the origin is not set back while the replica gives back. Nothing in the log is stable. In the end the log has each input that the store of the replica has shown since the last
// crash, unless the replica has deleted it, and none that it has deleted. Both sides agree, and the origin lists nothing but second deletions.
func TestRestores(t *testing.T) {
	for seed := range testkit.Seeds(t, 100, 5000) {
		s := restores{rig: newSealedRig(t), shown: map[string]bool{}, deleted: map[string]bool{}, before: map[string]bool{}}
		s.run(seed)
	}
}

// restores is the state of a schedule.
type restores struct {
	*rig
	backups []backup
	images  []image
	shown   map[string]bool // ids of the inputs that the store of the replica has shown
	deleted map[string]bool // ids of those that it has deleted
	before  map[string]bool // ids of those that it has deleted, also before its disk was set back
	lives   byte            // number of openings of the origin
	ids     int
}

// backup is a copy of the origin's store, with the opening of the process.
type backup struct {
	store   kv.Store
	opening log.Epoch
}

// image is a copy of the replica's disk.
type image struct {
	disk    *disk
	deleted map[string]bool
}

func (s *restores) run(seed uint64) {
	s.Helper()
	s.rng = rand.New(rand.NewPCG(seed, 5))
	s.cuts, s.batch, s.origin.runs = true, int(seed%2), 1+int(seed%3)
	faulty := true
	lost, cut := s.rng.IntN(30), s.rng.IntN(30)
	s.lose = func(*replica.Ask) bool { return faulty && s.rng.IntN(100) < lost }
	s.wire = func(_ *replica.Ask, x *replica.Answer) bool {
		if faulty && s.rng.IntN(100) < cut && len(x.Body) > 0 {
			x.Body, x.Err = x.Body[:s.rng.IntN(len(x.Body))], errors.New("cut")
		}
		return !faulty || s.rng.IntN(100) >= lost
	}
	s.backups = []backup{{copyOf(s.TB, s.origin.store), s.origin.part.Opening()}}
	s.images = []image{{s.image(), map[string]bool{}}}
	for range 150 {
		s.event()
		s.look()
	}
	faulty = false
	s.settle()
	s.agree()
	got := inputs(s.TB, s.origin.store)
	for id := range s.shown {
		if !s.before[id] && !slices.Contains(got, id) {
			s.Errorf("seed %d: the replica has shown %s, which the origin lacks", seed, id)
		}
	}
	for _, id := range got {
		if s.deleted[id] {
			s.Errorf("seed %d: the replica has deleted %s, which the origin has", seed, id)
		}
	}
	if err := s.origin.part.Conflicts(func(c partition.Conflict) bool {
		if !log.OnlyDeletes(c.Op.Body) { // the replica deletes an input again after its disk was set back
			s.Errorf("seed %d: the origin lists %T %v: %v", seed, c.Op.Body, c.Op.Dot, c.Verdict)
		}
		return true
	}); err != nil {
		s.Error(err)
	}
}

// look adds the inputs in the replica's store to those that it has shown.
func (s *restores) look() {
	s.Helper()
	for _, id := range inputs(s.TB, s.store) {
		s.shown[id] = true
	}
}

// event lets something happen.
func (s *restores) event() {
	s.Helper()
	switch n := s.rng.IntN(100); {
	case n < 12:
		s.ids++
		s.origin.submit(create(fmt.Sprint("o", s.ids)))
	case n < 26:
		s.ids++
		body := create(fmt.Sprint("r", s.ids))
		if s.rng.IntN(4) == 0 {
			body.Blob, body.ContentType = s.picture(1+s.rng.IntN(500)).Blob, "image/jpeg"
		}
		s.write(body)
	case n < 30:
		v := s.part.View()
		ids := inputs(s.TB, s.store)
		if len(ids) > 0 {
			in, err := v.InputByID(ids[s.rng.IntN(len(ids))])
			if err != nil {
				s.Fatal(err)
			}
			s.write(&log.InputDelete{Input: in.Dot})
			s.deleted[in.ID], s.before[in.ID] = true, true
		}
		if err := v.Close(); err != nil {
			s.Fatal(err)
		}
	case n < 33:
		s.backups = append(s.backups, backup{copyOf(s.TB, s.origin.store), s.origin.part.Opening()})
	case n < 37:
		s.restoreOrigin()
	case n < 39:
		s.lives++
		s.origin.open(log.Epoch{100, s.lives})
	case n < 41:
		s.images = append(s.images, image{s.image(), maps.Clone(s.deleted)})
	case n < 43: // the disk of the replica is set back
		x := s.images[s.rng.IntN(len(s.images))]
		s.reopen(&disk{batches: slices.Clone(x.disk.batches), durable: x.disk.durable})
		s.shown, s.deleted = map[string]bool{}, maps.Clone(x.deleted)
	case n < 46:
		s.crash()
		s.shown = map[string]bool{}
	case len(s.requests) > 0:
		s.deliver(s.rng.IntN(len(s.requests)))
	default:
		s.sleep()
	}
}

// restoreOrigin sets the origin back to a backup, sometimes with the memory of its process.
func (s *restores) restoreOrigin() {
	s.Helper()
	s.lives++
	x := s.backups[s.rng.IntN(len(s.backups))]
	opening := x.opening
	if s.rng.IntN(3) > 0 || s.origin.lacks(s.part.Cursor()) {
		opening = log.Epoch{100, s.lives}
	}
	s.clock = s.clock.Add(time.Second)
	s.origin.restore(copyOf(s.TB, x.store), opening)
}
