package call

// Exchange is a request and its answer for a host. It is not safe for concurrent use.
//
//	exchange := service.Begin(ctx, &request)
//	for !exchange.Done() {
//		exchange.Resume(work(exchange.Jobs()))
//	}
//	response := exchange.Response()
type Exchange struct {
	jobs     []Job
	resume   func([]Result) Response // nil if done
	response Response
	far      bool // it continues elsewhere, such as in a guest
}

// Done reports whether the response is ready.
func (e *Exchange) Done() bool { return e.resume == nil }

// Jobs returns the jobs that the exchange waits for, none if it is done. The exchange owns the slice.
func (e *Exchange) Jobs() []Job { return e.jobs }

// Resume passes the results of all jobs, in the order of the jobs. Jobs without a result
// count as failed. Afterwards the exchange is done or has other jobs.
func (e *Exchange) Resume(results []Result) {
	if e.Done() {
		return
	}
	next := e.resume
	e.jobs, e.resume = nil, nil
	e.response = next(results)
}

// Response returns the answer. It is valid once the exchange is done.
func (e *Exchange) Response() Response { return e.response }

// GiveUp ends an exchange that continues elsewhere and that nobody waits for any more. err becomes the result of each of its jobs. The
// other side keeps such an exchange until it is resumed. GiveUp does nothing for an exchange of this process.
func (e *Exchange) GiveUp(err error) {
	for e.far && !e.Done() {
		results := make([]Result, len(e.jobs))
		for i := range results {
			results[i].Err = err
		}
		e.Resume(results)
	}
}

// RespondWith returns a completed exchange with a response from elsewhere, such as a service's Refuse.
func RespondWith(r Response) *Exchange { return &Exchange{response: r} }

// NewExchange returns an exchange that continues elsewhere, such as in a guest. It has jobs, and passes their results to resume, one for
// each job. resume returns the next jobs, or the response and true. The exchange calls resume until it returns true.
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
