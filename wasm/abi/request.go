package abi

import "github.com/sightline-dev/sightline/core/api"

const bodyField = 15 // number of the body's field, the last one of requests and responses

// room is the number of bytes that the host had for the answer when it sent the request. The host reserves memory when the answer arrives.
type room uint64

// Reserve implements [api.Memory].
func (m room) Reserve(bytes int64) bool { return uint64(bytes) <= uint64(m) }

// Room implements [api.Memory].
func (m room) Room() int64 { return int64(m) }

// Settle implements [api.Memory]. The host settles the memory when the answer arrives.
func (room) Settle(int64) {}

// request is a request with the room for its answer.
//
//field:message envelope of request
//field:pages put
type request struct {
	api.Request `wire:"+0"`
	Room        uint64 `wire:"9"` // maximum size of the answer for which the host has memory now, in bytes; absent: unlimited
}

// AppendRequestHead returns a request without the bytes of its body, which the caller must append. It omits Header, which the core does not
// read. It reuses buf's memory.
func AppendRequestHead(buf []byte, r *api.Request) []byte {
	x := request{Request: *r}
	x.Body = nil
	if r.Memory != nil {
		x.Room = uint64(r.Memory.Room())
	}
	return last(encodeRequest(buf, &x), bodyField, len(r.Body))
}

// AppendRequest returns a request with its body. It reuses buf's memory.
func AppendRequest(buf []byte, r *api.Request) []byte {
	return append(AppendRequestHead(buf, r), r.Body...)
}

// ParseRequest reads a request. Its body shares data's memory.
func ParseRequest(data []byte) (api.Request, error) {
	x, err := decodeRequest(data)
	if x.Room > 0 {
		x.Memory = room(x.Room)
	}
	return x.Request, err
}

// ServeResult is the answer of serve and resume: a response, or the jobs of a call that waits for them.
//
//field:message envelope of response
//field:pages get
type ServeResult struct {
	Response api.Response `wire:"+0"`
	Call     uint64       `wire:"8"` // 0: Response is the answer
	Jobs     []api.Job    `wire:"9"` // jobs of the call
}

// AppendResponse returns a response. It omits Stream, which no response of the core has. It reuses buf's memory.
func AppendResponse(buf []byte, r *api.Response) []byte {
	x := ServeResult{Response: *r}
	x.Response.Body = nil
	return append(last(encodeServeResult(buf, &x), bodyField, len(r.Body)), r.Body...)
}

// AppendJobs returns the jobs of a call. call must be above 0. AppendJobs reuses buf's memory.
func AppendJobs(buf []byte, call uint64, jobs []api.Job) []byte {
	return encodeServeResult(buf, &ServeResult{Call: call, Jobs: jobs})
}

// ParseServeResult reads the answer of serve or resume. The body and the jobs' data share data's memory.
func ParseServeResult(data []byte) (ServeResult, error) { return decodeServeResult(data) }
