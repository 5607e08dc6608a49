package feed

import (
	"strings"
	"unicode"

	"github.com/sightline-dev/sightline/core/api"
)

// maxDeviceName is the maximum number of characters of the name of a device.
const maxDeviceName = 100

// device returns the caller as a device. An edge has its own name. Other replicas send their kind and an ID that they have chosen, in the
// parameter device: "page-" or "folder-" and 32 hexadecimal digits. ok is false if a replica sends none, as those of earlier programs do.
func (c *call) device() (d api.Device, ok bool) {
	if c.edge != nil {
		return api.Device{ID: c.edge.ID, Kind: "edge", Contact: c.f.o.Clock()}, true
	}
	kind, id, _ := strings.Cut(c.query.Get("device"), "-")
	ok = (kind == "page" || kind == "folder") && len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
	return api.Device{ID: id, Kind: kind, Contact: c.f.o.Clock()}, ok
}

// noteSession reports the contact of a session about an application. position is the last entry that the replica has; 0: not known.
func (c *call) noteSession(app, name string, position uint64) {
	d, ok := c.device()
	if !ok || c.f.o.Contact == nil {
		return
	}
	d.Position = position
	if d.Name = deviceName(name); c.edge != nil {
		d.Name = c.edge.Name
	}
	c.f.o.Contact(app, d)
}

// noteContact reports a contact of the reader, which has received the entries up to its cursor and every change of keys.
func (x *reader) noteContact() {
	d, ok := x.c.device()
	if !ok || x.bare || x.c.f.o.Contact == nil {
		return
	}
	d.Position = x.cursor
	if x.c.edge != nil {
		d.KeysAsOf = d.Contact
	}
	x.c.f.o.Contact(x.c.app, d)
}

// deviceName returns a name that a replica sent, without control characters and not too long.
func deviceName(name string) string {
	clean := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, name)))
	return string(clean[:min(len(clean), maxDeviceName)])
}
