package call

import (
	"net/url"
	"strconv"
)

// Page says which rows of a list are wanted.
type Page struct {
	Number, Size int64 // number from 1
}

// farthest is beyond the last page of anything; larger numbers mean it.
const farthest = 1 << 40

// Page reads page and per_page from the query, and from the body's pagination, which
// wins where both say something. Absent and 0 mean page 1 and the default size.
func (x *Call) Page() (Page, error) {
	var p Page
	x.chosen = true
	values, _ := url.ParseQuery(x.Query) // what is malformed is unknown, and so ignored
	for name, n := range map[string]*int64{"page": &p.Number, "per_page": &p.Size} {
		if text := values.Get(name); text != "" {
			var err error
			if *n, err = strconv.ParseInt(text, 10, 64); err != nil {
				return p, Refusef(ErrPage, "%s: %q is not an integer.", name, text)
			}
		}
	}
	body, err := x.Body.Object("pagination")
	if err != nil {
		return p, Refuse(ErrPage, err)
	}
	for name, n := range map[string]*int64{"page": &p.Number, "per_page": &p.Size} {
		if !body.Has(name) {
			continue
		}
		if *n, err = body.Integer(name); err != nil {
			return p, Refuse(ErrPage, err)
		}
	}
	if p.Number < 0 || p.Size < 0 {
		return p, Refusef(ErrPage, "page and per_page must be at least 1.")
	}
	if p.Number == 0 {
		p.Number = 1
	}
	if p.Size == 0 {
		p.Size = DefaultPerPage
	}
	return Page{min(p.Number, farthest), min(p.Size, MaxPerPage)}, nil
}

// Has reports whether the row at a place, from 0, belongs to the page.
func (p Page) Has(at int64) bool {
	from := (p.Number - 1) * p.Size
	return at >= from && at < from+p.Size
}

// Cut returns the rows of a page; none past the end.
func Cut[T any](rows []T, p Page) []T {
	from := min((p.Number-1)*p.Size, int64(len(rows)))
	return rows[from:min(from+p.Size, int64(len(rows)))]
}

// Param is a parameter of the query; "" when absent. What is malformed is unknown, and so ignored.
func (x *Call) Param(name string) string {
	values, _ := url.ParseQuery(x.Query)
	return values.Get(name)
}
