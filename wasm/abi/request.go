package abi

import (
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log/field"
)

const bodyField = 15

// room is the memory that the host had for the answer when it sent the request. The host reserves what the answer takes when it comes.
type room uint64

// Reserve implements [api.Memory].
func (m room) Reserve(bytes int64) bool { return uint64(bytes) <= uint64(m) }

// Room implements [api.Memory].
func (m room) Room() int64 { return int64(m) }

// AppendRequestHead writes a request but for its body's bytes, which come right behind it. Its
// Header stays behind: the core asks for none.
func AppendRequestHead(buf []byte, r *api.Request) []byte {
	e := encoder(buf)
	e.Text(1, r.Method)
	e.Text(2, r.Path)
	e.Text(3, r.Query)
	e.Text(4, r.Authorization)
	e.Text(5, r.Session)
	e.Text(6, r.App)
	e.Text(7, r.Remote)
	e.Bool(8, r.Page)
	if r.Memory != nil {
		e.Uint(9, uint64(r.Memory.Room()))
	}
	return last(e.Bytes(nil), bodyField, len(r.Body))
}

// AppendRequest writes a request.
func AppendRequest(buf []byte, r *api.Request) []byte {
	return append(AppendRequestHead(buf, r), r.Body...)
}

// ParseRequest reads a request. Its body is borrowed from data.
func ParseRequest(data []byte) (api.Request, error) {
	var r api.Request
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			r.Method = d.Text()
		case 2:
			r.Path = d.Text()
		case 3:
			r.Query = d.Text()
		case 4:
			r.Authorization = d.Text()
		case 5:
			r.Session = d.Text()
		case 6:
			r.App = d.Text()
		case 7:
			r.Remote = d.Text()
		case 8:
			r.Page = d.Bool()
		case 9:
			r.Memory = room(d.Uint())
		case bodyField:
			r.Body = d.Raw()
		}
	}
	return r, envelope("request", d)
}

// Served is what serve and resume answer: a response, or the jobs of a call that waits for them.
type Served struct {
	Response api.Response
	Call     uint64 // 0: Response is the answer
	Jobs     []api.Job
}

// AppendResponse writes a response. The core's have no Stream.
func AppendResponse(buf []byte, r *api.Response) []byte {
	e := encoder(buf)
	e.Uint(1, uint64(r.Status))
	e.Text(2, r.ContentType)
	putHeaders(e, 3, r.Header)
	if r.Did != (api.Deed{}) {
		at := e.Open(10)
		e.Text(1, r.Did.Action)
		e.Text(2, r.Did.App)
		e.Text(3, r.Did.By)
		e.Close(at)
	}
	return append(last(e.Bytes(nil), bodyField, len(r.Body)), r.Body...)
}

// AppendJobs writes the jobs of a call, whose number is above 0.
func AppendJobs(buf []byte, call uint64, jobs []api.Job) []byte {
	e := encoder(buf)
	e.Uint(8, call)
	for i := range jobs {
		at := e.Open(9)
		putJob(e, &jobs[i])
		e.Close(at)
	}
	return e.Bytes(nil)
}

// ParseServed reads what serve or resume answered. The body, and the jobs' data, are borrowed.
func ParseServed(data []byte) (Served, error) {
	var s Served
	r := &s.Response
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			r.Status = d.Int()
		case 2:
			r.ContentType = d.Text()
		case 3:
			r.Header = append(r.Header, getHeader(d))
		case 8:
			s.Call = d.Uint()
		case 9:
			s.Jobs = append(s.Jobs, getJob(d.Message()).Job)
		case 10:
			r.Did = getDeed(d.Message())
		case bodyField:
			r.Body = d.Raw()
		}
	}
	return s, envelope("response", d)
}

func getDeed(d *field.Decoder) (did api.Deed) {
	for d.Next() {
		switch d.Number {
		case 1:
			did.Action = d.Text()
		case 2:
			did.App = d.Text()
		case 3:
			did.By = d.Text()
		}
	}
	return did
}

func putHeaders(e *field.Encoder, number int, header []api.Field) {
	for _, f := range header {
		at := e.Open(number)
		e.Text(1, f.Name)
		e.Text(2, f.Value)
		e.Close(at)
	}
}

func getHeader(d *field.Decoder) api.Field {
	var f api.Field
	m := d.Message()
	for m.Next() {
		switch m.Number {
		case 1:
			f.Name = m.Text()
		case 2:
			f.Value = m.Text()
		}
	}
	return f
}
