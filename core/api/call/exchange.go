package call

// Exchange is a request and its answer, as a host sees them. It is used by one thread at a time.
//
//	exchange := service.Begin(ctx, &request)
//	for !exchange.Done() {
//		exchange.Resume(work(exchange.Jobs()))
//	}
//	response := exchange.Response()
type Exchange struct {
	jobs     []Job
	resume   func([]Result) Response // nil when done
	response Response
	far      bool // it continues elsewhere
}

// Done reports whether the response is ready.
func (e *Exchange) Done() bool { return e.resume == nil }

// Jobs lists what the exchange waits for, none when it is done. The slice is the exchange's own.
func (e *Exchange) Jobs() []Job { return e.jobs }

// Resume hands over the results of all jobs, in their order. Jobs without a result count
// as failed. After it the exchange may be done or have other jobs.
func (e *Exchange) Resume(results []Result) {
	if e.Done() {
		return
	}
	next := e.resume
	e.jobs, e.resume = nil, nil
	e.response = next(results)
}

// Response is the answer; it is ready when the exchange is done.
func (e *Exchange) Response() Response { return e.response }

// GiveUp ends an exchange that continues elsewhere, if nobody needs its answer: err is the result of each of its jobs. The other side
// keeps such an exchange until it is resumed; one of this program is not kept.
func (e *Exchange) GiveUp(err error) {
	for e.far && !e.Done() {
		results := make([]Result, len(e.jobs))
		for i := range results {
			results[i].Err = err
		}
		e.Resume(results)
	}
}

// RespondWith returns an exchange that is done with a response from elsewhere, such as a service's Refuse.
func RespondWith(r Response) *Exchange { return &Exchange{response: r} }

// NewExchange returns an exchange that continues elsewhere, such as in a guest. It has jobs, and passes their results to resume, one for
// each job. resume returns the next jobs, or the response and true. It is called again until it returns true.
func NewExchange(jobs []Job, resume func([]Result) (next []Job, r Response, done bool)) *Exchange {
	e := &Exchange{jobs: jobs, far: true}
	e.resume = func(results []Result) Response {
		next, r, done := resume(results)
		if !done {
			*e = *NewExchange(next, resume)
		}
		return r
	}
	return e
}
