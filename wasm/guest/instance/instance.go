// Package instance does the work of the module without its calling convention: it maps envelopes to envelopes, and uses the host's
// services through [hostapi.Imports]. So the same code runs in the module and in native tests.
//
//	Open(Settings) ──▶ engine over the host's store, or over a store in memory · analyser
//	Serve(Request) ──▶ Response ─ or ─▶ Jobs of call n ──host──▶ Resume(Results of call n) ──▶ …
//	Step           ──▶ new tasks; a few milliseconds of a training, of the indexes, of cleaning up
//	Analyse(Job)   ──▶ Result
//	Ask(Query)     ──▶ Reply
//	Sync(Event)    ──▶ SyncResult: the requests of a replica's machine, and its status
//
// A panic fails only its request, task or picture, which is answered as an internal error; the instance continues. The host must handle a
// trap of the module (memory at its end, a stack too deep).
package instance

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
)

// Instance is an engine, an analyser, or both, behind envelopes. The zero value with Imports can be opened. Only one thread may use it. A
// call borrows its argument until it returns. The caller may use an answer until the next call.
type Instance struct {
	Imports hostapi.Imports

	settings  abi.Settings
	engine    *core.Engine       // nil if the instance has no engine role or is not open
	network   [32]byte           // base of the network of Settings.Bundles
	pictures  *pictures          // pictures in the instance's own store; nil: the host stores them
	salvaged  [2]journal.Salvage // of the store and of its pictures
	close     []func() error
	singleApp *singleApp // access to a single application; nil: credentials identify the caller
	analysts  *analysts
	machine   *replica.Machine // nil: the application is not a replica

	calls     []underWay           // calls that wait for their jobs; few at a time
	tasks     map[uint64]core.Task // tasks that were handed out, by number
	trainings []core.Task          // trainings, of which each step does a part
	number    uint64               // newest number of a call or a task

	answer []byte // buffer of the answer; it only grows
}

// underWay is a call that waits for its jobs' results.
type underWay struct {
	number  uint64
	call    *api.Exchange
	request api.Request // request without its body, for a refusal
}

// Levels of the log, as in log/slog.
const (
	levelWarn  = 4
	levelError = 8
)

func (i *Instance) log(level int32, format string, args ...any) {
	i.Imports.Log(level, fmt.Sprintf(format, args...))
}

// guard runs work and recovers its panic. onPanic is called after a panic.
func (i *Instance) guard(name string, work func(), onPanic func()) {
	done := false
	defer func() {
		if done {
			return
		}
		if v := recover(); v != nil {
			i.log(levelError, "panic in %s: %v\n%s", name, v, debug.Stack())
			onPanic()
		}
	}()
	work()
	done = true
}

// Serve begins a request. The answer is a Response, or the Jobs of a call.
func (i *Instance) Serve(data []byte) []byte {
	r, err := abi.ParseRequest(data)
	if err != nil {
		return i.refuse(&r, err)
	}
	if i.engine == nil {
		return i.refuse(&r, errNoEngine)
	}
	i.guard("request", func() {
		if i.singleApp != nil {
			i.singleApp.admit(&r)
		}
		call := i.engine.Begin(context.Background(), &r)
		r.Body = nil
		i.continueCall(&underWay{0, call, r})
	}, func() { i.refuse(&r, api.ErrInternal) })
	return i.answer
}

// Resume continues a call. The answer is a Response, or the next Jobs.
func (i *Instance) Resume(data []byte) []byte {
	number, results, err := abi.ParseResults(data)
	if err != nil {
		return i.refuse(&api.Request{}, err)
	}
	at := slices.IndexFunc(i.calls, func(u underWay) bool { return u.number == number })
	if at < 0 {
		return i.refuse(&api.Request{}, fmt.Errorf("%w: no call %d is running", errEnvelope, number))
	}
	u := i.calls[at]
	i.calls = slices.Delete(i.calls, at, at+1)
	i.guard("request", func() {
		got := make([]api.Result, len(results))
		for n := range results {
			got[n] = i.storePicture(&results[n])
		}
		u.call.Resume(got)
		i.continueCall(&u)
	}, func() { i.refuse(&u.request, api.ErrInternal) })
	return i.answer
}

// continueCall answers with the response of a call, or with its next jobs. A call without a number gets a new one.
func (i *Instance) continueCall(u *underWay) {
	if u.call.Done() {
		r := u.call.Response()
		if r.Err != nil {
			i.log(levelError, "%s %s: %v", u.request.Method, u.request.Path, r.Err)
		}
		i.answer = abi.AppendResponse(i.answer, &r)
		return
	}
	if u.number == 0 {
		i.number++
		u.number = i.number
	}
	i.calls = append(i.calls, *u)
	jobs := u.call.Jobs()
	for n := range jobs {
		i.inline(&jobs[n])
	}
	i.answer = abi.AppendJobs(i.answer, u.number, jobs)
}

// refuser answers requests that need no engine.
var refuser api.Service

// refuse answers a request that the instance does not serve.
func (i *Instance) refuse(r *api.Request, err error) []byte {
	response := refuser.Refuse(r, err)
	i.answer = abi.AppendResponse(i.answer, &response)
	return i.answer
}
