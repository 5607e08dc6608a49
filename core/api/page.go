package api

import (
	"net/url"
	"strconv"
)

// page says which rows of a list are wanted.
type page struct {
	number, size int64 // number from 1
}

// farthest is beyond the last page of anything; larger numbers mean it.
const farthest = 1 << 40

// paged reads page and per_page from the query, and from the body's pagination, which
// wins where both say something. Absent and 0 mean page 1 and the default size.
func (x *Call) paged() (page, error) {
	var p page
	x.chosen = true
	values, _ := url.ParseQuery(x.query) // what is malformed is unknown, and so ignored
	for name, n := range map[string]*int64{"page": &p.number, "per_page": &p.size} {
		if text := values.Get(name); text != "" {
			var err error
			if *n, err = strconv.ParseInt(text, 10, 64); err != nil {
				return p, refusef(ErrPage, "%s: %q is not an integer.", name, text)
			}
		}
	}
	body, err := x.body.object("pagination")
	if err != nil {
		return p, refuse(ErrPage, err)
	}
	for name, n := range map[string]*int64{"page": &p.number, "per_page": &p.size} {
		if !body.has(name) {
			continue
		}
		if *n, err = body.integer(name); err != nil {
			return p, refuse(ErrPage, err)
		}
	}
	if p.number < 0 || p.size < 0 {
		return p, refusef(ErrPage, "page and per_page must be at least 1.")
	}
	if p.number == 0 {
		p.number = 1
	}
	if p.size == 0 {
		p.size = defaultPerPage
	}
	return page{min(p.number, farthest), min(p.size, maxPerPage)}, nil
}

// has reports whether the row at a place, from 0, belongs to the page.
func (p page) has(at int64) bool {
	from := (p.number - 1) * p.size
	return at >= from && at < from+p.size
}

// cut returns the rows of a page; none past the end.
func cut[T any](rows []T, p page) []T {
	from := min((p.number-1)*p.size, int64(len(rows)))
	return rows[from:min(from+p.size, int64(len(rows)))]
}
