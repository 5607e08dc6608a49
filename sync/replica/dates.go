package replica

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Pauses before the replica asks again for dates that the origin has not read yet.
const (
	datesPause    = 10 * time.Minute
	datesLongStop = 24 * time.Hour
)

// dates fetches the dates of pictures whose derived records came from an earlier release of the origin. Records that come later have dates.
//
//	derived records without a date ──▶ up to 512 names ──▶ POST dates ──▶ dates into the same records
//	                                            none lack one ──▶ note: no further look with this exif.Version
type dates struct {
	from    []byte   // name from which the look continues
	next    []byte   // name from which it continues after the request; nil: it ends
	names   [][]byte // names in the request
	lacking bool     // the origin has not read all dates yet
	pauses  int      // looks that ended so
	due     time.Duration
}

// startDates asks for the next dates. It looks at some records in each step, because other lanes wait.
func (m *Machine) startDates(l *lane) error {
	d := &m.dates
	if !m.session.dates || m.o.Wants.Vectors != wire.VectorsQ16 || m.note.dated >= exif.Version || m.session.rebase || !m.pull.caught {
		return nil
	}
	if m.at < d.due {
		l.next = d.due
		return nil
	}
	var err error
	if d.names, d.next, err = catalog.Read(m.o.Store, m.o.App).UndatedDerived(d.from, wire.MaxDates); err != nil {
		return err
	}
	if len(d.names) == 0 {
		l.next = m.at + time.Millisecond
		return m.endDates()
	}
	if err := m.o.Store.Room(); err != nil {
		return err
	}
	request := wire.DatesRequest{App: m.o.App.String()}
	for _, name := range d.names {
		request.Names = append(request.Names, name...)
	}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/dates", Body: request.Encode()})
	return nil
}

// handleDates stores the dates of an answer.
func (m *Machine) handleDates(l *lane, body []byte) error {
	d := &m.dates
	answer, err := wire.DecodeDates(body)
	if err != nil {
		return err
	}
	if len(answer.Dates) != len(d.names) {
		return fmt.Errorf("%w: %d dates for %d pictures", errAnswer, len(answer.Dates), len(d.names))
	}
	var records kv.Batch
	for i, date := range answer.Dates {
		if d.lacking = d.lacking || date.Read < exif.Version; date.Read == 0 {
			continue
		}
		if err := catalog.CarryTaken(m.o.Store, &records, m.o.App, d.names[i], date.Taken, date.Read); err != nil {
			return err
		}
	}
	if records.Len() > 0 {
		if err := m.pullNothing(partition.Run{Attach: func(b *kv.Batch) { b.Append(&records) }}); err != nil {
			return err
		}
	}
	l.succeeded()
	return m.endDates()
}

// endDates ends a part of the look, and the look after its last part.
func (m *Machine) endDates() error {
	d := &m.dates
	d.names, d.from = nil, d.next
	if d.from != nil {
		return nil
	}
	if d.lacking {
		d.due = m.at + min(datesPause<<min(d.pauses, 10), datesLongStop)
		d.lacking, d.pauses = false, d.pauses+1
		return nil
	}
	return m.noteDated(exif.Version)
}

// forgetDates makes the replica look again, since a snapshot may have brought records without a date.
func (m *Machine) forgetDates() error {
	m.dates = dates{}
	if m.note.dated == 0 {
		return nil
	}
	return m.noteDated(0)
}
