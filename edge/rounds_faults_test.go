package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// This file has the faults of a round of TestNothingIsLost: kills, power cuts, full disks, cut links, rollbacks and restores.

// faults cuts or repairs the link of each host, and fills or frees its disk, at random.
func (r *round) faults() {
	for _, h := range r.hosts {
		if h.way != nil {
			cut := r.rnd.IntN(3) == 0
			h.way.set(cut)
			if cut {
				r.Links++
				r.logEvent("%s is cut off", h.name)
			}
		}
		if h.disk != "" {
			full := r.rnd.IntN(7) == 0
			r.fill(h, full)
			if full {
				r.Full++
				r.logEvent("the disk of %s is full", h.name)
			}
		}
	}
}

// fill makes writes to a host's disk fail as on a full disk, or ends that.
func (r *round) fill(h *host, full bool) {
	r.t.Helper()
	name := filepath.Join(h.disk, fullName)
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	if !full {
		return
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// keep saves an image of a host's folder: a backup of the running host, or a copy of the folder of the stopped host.
func (r *round) keep(h *host) {
	r.t.Helper()
	x := &savedState{folder: filepath.Join(r.t.TempDir(), "image"), writes: map[*write]bool{}}
	x.backup = h.page == nil && r.rnd.IntN(2) == 0
	v := r.look(h)
	for _, w := range r.writes {
		if w.acked && r.has(h, v, w) {
			x.writes[w] = true
		}
	}
	x.seen = maps.Clone(h.seen)
	h.saved = x
	if x.backup {
		r.logEvent("%s is backed up", h.name)
		program := r.edge
		if h.way == nil {
			program = r.origin
		}
		command(r.t, program, "backup", x.folder, "--data", h.data, "--quiet")
		return
	}
	r.logEvent("the disk of %s is copied", h.name)
	r.stop(h)
	r.copy(h.data, x.folder)
	r.start(h)
}

// copy copies a folder.
func (r *round) copy(from, to string) {
	r.t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		switch name, _ := filepath.Rel(from, path); {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !d.Type().IsRegular():
			return nil
		default:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// strike saves an image of a host, or sets a host back to its saved image. A write that neither the image nor another host has is lost, and
// the test allows that.
func (r *round) strike() {
	r.t.Helper()
	back := slices.DeleteFunc(slices.Clone(r.hosts), func(h *host) bool { return h.saved == nil })
	if r.rnd.IntN(4) == 0 || len(back) == 0 {
		r.keep(r.hosts[r.rnd.IntN(len(r.hosts))])
		return
	}
	h := back[r.rnd.IntN(len(back))]
	r.look(h) // records the host's conflicts, which the image may not have
	x := h.saved
	if r.rnd.IntN(2) == 0 {
		r.stop(h)
	} else {
		r.kill(h)
		h.up = false
	}
	views := map[*host]*view{}
	for _, other := range r.hosts {
		if other != h {
			views[other] = r.look(other)
		}
	}
	lost := 0
	for _, w := range r.writes {
		if !w.acked || w.lost || x.writes[w] {
			continue
		}
		w.lost = true
		for other, v := range views {
			w.lost = w.lost && !r.has(other, v, w)
		}
		if w.lost {
			lost++
		}
	}
	r.Forgiven += lost
	h.life++
	h.seen = maps.Clone(x.seen)
	for _, w := range r.writes {
		if x.writes[w] && w.at == h { // the restored host has it, too
			w.life = h.life
		}
	}
	if err := os.RemoveAll(h.data); err != nil {
		r.t.Fatal(err)
	}
	if h.disk != "" {
		forgetJournal(r.t, h.disk)
		r.fill(h, false)
	}
	if x.backup {
		r.Restores++
		r.logEvent("%s is restored, and %d writes have no copy", h.name, lost)
		program := r.edge
		if h.way == nil {
			program = r.origin
		}
		command(r.t, program, "restore", x.folder, "--data", h.data, "--quiet")
	} else {
		r.Rollbacks++
		r.logEvent("the disk of %s is set back, and %d writes have no copy", h.name, lost)
		r.copy(x.folder, h.data)
	}
	r.start(h)
}

// heal ends all faults.
func (r *round) heal() {
	r.logEvent("all faults end")
	for _, h := range r.hosts {
		if h.way != nil {
			h.way.set(false)
		}
		if h.disk != "" {
			r.fill(h, false)
		}
	}
	r.revive()
}
