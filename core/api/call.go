package api

// Call is a request under way. It is used by one thread at a time.
//
//	call := service.Begin(ctx, &request)
//	for !call.Done() {
//		call.Resume(work(call.Jobs()))
//	}
//	response := call.Response()
type Call struct {
	jobs     []Job
	resume   func([]Result) Response // nil when done
	response Response
	far      bool // it goes on elsewhere
}

// Done reports whether the response is ready.
func (c *Call) Done() bool { return c.resume == nil }

// Jobs lists what the call waits for, none when it is done. The slice is the call's own.
func (c *Call) Jobs() []Job { return c.jobs }

// Resume hands over the results of all jobs, in their order. Jobs without a result count
// as failed. After it the call may be done or have other jobs.
func (c *Call) Resume(results []Result) {
	if c.Done() {
		return
	}
	next := c.resume
	c.jobs, c.resume = nil, nil
	c.response = next(results)
}

// Response is the answer; it is ready when the call is done.
func (c *Call) Response() Response { return c.response }

// GiveUp tells a call that goes on elsewhere that nobody waits for its answer: err is the result of
// each of its jobs. Such a call is held there until it is resumed; one of this program is not.
func (c *Call) GiveUp(err error) {
	for c.far && !c.Done() {
		results := make([]Result, len(c.jobs))
		for i := range results {
			results[i].Err = err
		}
		c.Resume(results)
	}
}

// Answered is a call that is done with a response from elsewhere, such as [Service.Refuse].
func Answered(r Response) *Call { return &Call{response: r} }

// NewCall is a call that goes on elsewhere, such as in a guest: it waits for jobs, and hands
// their results to resume, one a job, which returns the jobs that come next, or the response
// and true. resume is called once for each time that it was not done.
func NewCall(jobs []Job, resume func([]Result) (next []Job, r Response, done bool)) *Call {
	c := &Call{jobs: jobs, far: true}
	c.resume = func(results []Result) Response {
		next, r, done := resume(results)
		if !done {
			*c = *NewCall(next, resume)
		}
		return r
	}
	return c
}
