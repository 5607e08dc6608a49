package replica

import (
	"cmp"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// Devices lists the hosts that have the application. An origin knows all that contacted it. A replica knows its origin and itself, since
// its last contact.
func Devices(x *call.Call) error {
	page, err := x.Page()
	if err != nil {
		return err
	}
	head, asOf := x.App.Partition.Log().Head(), x.Now
	all := []call.Device{{Kind: "origin", Name: x.Host.PublicURL, Contact: asOf, Position: head}}
	if x.App.Replica != nil {
		p, s, err := x.Replica()
		if err != nil {
			return err
		}
		at := p.Cursor().Seq
		head, asOf = max(s.Head, at), s.Contact
		all[0] = call.Device{Kind: "origin", Name: s.Origin, Contact: asOf, Position: head}
		all = append(all, call.Device{Kind: cmp.Or(s.Kind, "folder"), Name: s.Name, Contact: asOf, Position: at, KeysAsOf: s.KeysAsOf})
	} else if x.Host.Devices != nil {
		known, err := x.Host.Devices(x.App.ID)
		if err != nil {
			return err
		}
		all = append(all, known...)
	}
	rows := call.PageRows(all, page)
	return x.OK(func(w *jsonio.Writer) {
		show.WriteTime(w, "as_of", asOf)
		w.Objects("devices", len(rows), func(i int) {
			d := &rows[i]
			show.WriteText(w, "id", d.ID)
			show.WriteText(w, "name", d.Name)
			show.WriteText(w, "kind", d.Kind)
			show.WriteTime(w, "contact", d.Contact)
			show.WriteInt(w, "position", d.Position)
			show.WriteInt(w, "head", head)
			show.WriteTime(w, "keys_as_of", d.KeysAsOf)
		})
	})
}
