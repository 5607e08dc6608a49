package account

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

func deviceID(n int) string { return fmt.Sprintf("%032x", n) }

// contact notes a contact of a device now.
func (w *world) contact(d api.Device) {
	w.t.Helper()
	d.Contact = w.clock.now()
	if err := w.NoteContact(anApp, d); err != nil {
		w.t.Fatal(err)
	}
}

// devicesOf returns the devices of the application, one line each.
func (w *world) devicesOf(r *Registry) string {
	w.t.Helper()
	all, err := r.Devices(anApp)
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, d := range all {
		line := fmt.Sprintf("%s %s %s at %d", d.Kind, d.Name, d.Contact.Format("15:04"), d.Position)
		if !d.KeysAsOf.IsZero() {
			line += " keys " + d.KeysAsOf.Format("15:04")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// TestDevicesOutliveRestarts: the last contact of a device is known after a restart in order, and after a crash that of some minutes before.
func TestDevicesOutliveRestarts(t *testing.T) {
	w := open(t, nil)
	reopen := func() *Registry {
		t.Helper()
		o := w.o
		r, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	check := func(r *Registry, want string) {
		t.Helper()
		if got := w.devicesOf(r); got != want {
			t.Errorf("devices %q, want %q", got, want)
		}
	}
	edge := api.Device{ID: deviceID(1), Kind: "edge", Name: "Cabin", Position: 7, KeysAsOf: w.clock.now()}
	w.contact(edge)
	w.contact(api.Device{ID: deviceID(2), Kind: "page", Name: "Firefox (Linux)", Position: 3})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	first := "edge Cabin 12:00 at 7 keys 12:00; page Firefox (Linux) 12:00 at 3"
	check(reopen(), first)

	// A contact without a name, a position and keys leaves them. It is not written at once.
	w.clock.pass(time.Minute)
	w.contact(api.Device{ID: deviceID(1), Kind: "edge"})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	check(w.Registry, strings.Replace(first, "Cabin 12:00", "Cabin 12:01", 1))
	check(reopen(), first)
	w.clock.pass(deviceEvery)
	w.contact(api.Device{ID: deviceID(1), Kind: "edge", Position: 9})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	check(reopen(), "edge Cabin 12:06 at 9 keys 12:00; page Firefox (Linux) 12:00 at 3")
	w.clock.pass(time.Minute)
	w.contact(api.Device{ID: deviceID(2), Kind: "page"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check(reopen(), "page Firefox (Linux) 12:07 at 3; edge Cabin 12:06 at 9 keys 12:00")

	if err := w.DropUsage(anApp); err != nil {
		t.Fatal(err)
	}
	check(reopen(), "")
}

// TestDevicesAreBounded: an application has a limited number of pages and folders, and forgets them after some months. It keeps edges.
func TestDevicesAreBounded(t *testing.T) {
	w := open(t, nil)
	w.contact(api.Device{ID: deviceID(0), Kind: "edge", Name: "Cabin"})
	for i := range maxDevices + 20 {
		w.clock.pass(time.Second)
		w.contact(api.Device{ID: deviceID(i + 1), Kind: "page", Name: fmt.Sprint(i)})
		if i%7 == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := w.Devices(anApp)
	if err != nil || len(all) != maxDevices+1 || all[0].Name != fmt.Sprint(maxDevices+19) || all[maxDevices].Name != "Cabin" {
		t.Errorf("%d devices, %v", len(all), err)
	}
	w.clock.pass(deviceLife + time.Hour)
	if got := w.devicesOf(w.Registry); got != "edge Cabin 12:00 at 0" {
		t.Errorf("after some months: %q", got)
	}
	if err := w.NoteContact(anApp, api.Device{ID: "x", Kind: "page"}); err != nil || strings.Contains(w.devicesOf(w.Registry), "page") {
		t.Errorf("a device without an ID: %v", err)
	}
}
