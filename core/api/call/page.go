package call

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
)

// Page selects the rows of a list.
type Page struct {
	Number, Size int64 // Number starts at 1; Size is in rows
}

// farthest is a page number after the last page of every list. Larger numbers are reduced to it.
const farthest = 1 << 40

// Page reads page and per_page from the query, and from the body's pagination, which
// takes precedence. Absent and 0 mean page 1 and the default size.
func (x *Call) Page() (Page, error) {
	x.chosen = true
	values, _ := url.ParseQuery(x.Query) // malformed parameters are ignored, like unknown ones
	number := func(name string) (n int64, err error) {
		if text := values.Get(name); text != "" {
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				err = Refusef(ErrPage, "%s: %q is not an integer.", name, text)
			}
		}
		return n, err
	}
	var err error
	p := Page{Read(&err, number, "page"), Read(&err, number, "per_page")}
	body := Read(&err, x.Body.Object, "pagination")
	if body.Has("page") {
		p.Number = Read(&err, body.Integer, "page")
	}
	sized := "per_page"
	if body.Has("per_page") {
		p.Size = Read(&err, body.Integer, "per_page")
		sized = body.MemberPath("per_page")
	}
	if err != nil {
		return p, Refuse(ErrPage, err)
	}
	if p.Number < 0 || p.Size < 0 {
		return p, Refusef(ErrPage, "page and per_page must be at least 1.")
	}
	if p.Size > MaxPerPage {
		x.Notify(sized, fmt.Sprintf("%d is the maximum, not %d.", MaxPerPage, p.Size))
	}
	return Page{min(cmp.Or(p.Number, 1), farthest), min(cmp.Or(p.Size, DefaultPerPage), MaxPerPage)}, nil
}

// Has reports whether the row at an index, starting at 0, is on the page.
func (p Page) Has(at int64) bool {
	from := (p.Number - 1) * p.Size
	return at >= from && at < from+p.Size
}

// PageRows returns the rows on a page. It returns no rows for a page after the last.
func PageRows[T any](rows []T, p Page) []T {
	from := min((p.Number-1)*p.Size, int64(len(rows)))
	return rows[from:min(from+p.Size, int64(len(rows)))]
}

// Param returns a parameter of the query, or "" if it is absent or malformed.
func (x *Call) Param(name string) string {
	values, _ := url.ParseQuery(x.Query)
	return values.Get(name)
}
