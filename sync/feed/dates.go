package feed

import (
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	datesBytes  = 64 << 10
	recordBytes = 4 << 10 // bytes that the origin reads for a date, which count like bytes of frames
)

// dates answers the dates of pictures. The names in the request are those of derived records of the application, so the caller learns
// nothing about pictures that the application lacks.
func (c *call) dates() (api.Response, error) {
	m, err := read(c, datesBytes, "DatesBytes", wire.DecodeDatesRequest)
	if err != nil {
		return api.Response{}, err
	}
	const size = catalog.DerivedNameBytes
	n := len(m.Names) / size
	switch {
	case len(m.Names)%size != 0:
		return api.Response{}, malformedError("dates: names of %d bytes", len(m.Names))
	case n > wire.MaxDates:
		return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many dates", Limit: "Dates", Value: wire.MaxDates}
	}
	p, err := c.open(m.App)
	if err != nil {
		return api.Response{}, err
	}
	if err := c.f.meters.frames.take(c, uint64(n*recordBytes), c.now, "bytes"); err != nil {
		return api.Response{}, err
	}
	v := p.View()
	defer v.Close()
	out := wire.Dates{Dates: make([]wire.Date, n)}
	for i := range out.Dates {
		d := &out.Dates[i]
		if d.Taken, d.Read, err = v.TakenOf(m.Names[i*size:][:size]); err != nil {
			return api.Response{}, err
		}
	}
	return message(out.Encode()), nil
}
