package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// refuser answers requests that need no guest.
var refuser api.Service

// Begin starts a request; see [core.Engine.Begin]. If the guest has failed, or fails during the request, the exchange is done and its
// response is a refusal with api.ErrInternal.
func (in *Instance) Begin(ctx context.Context, r *api.Request) *api.Exchange {
	in.head = abi.AppendRequestHead(in.head[:0], r)
	answer, err := in.call(ctx, "serve", in.head, r.Body)
	request := *r
	request.Body, request.Header = nil, nil // they belong to the caller
	return in.continueCall(ctx, &request, answer, err)
}

// continueCall returns the exchange for an answer of the export serve. If the call waits for jobs, the exchange calls resume.
func (in *Instance) continueCall(ctx context.Context, r *api.Request, answer []byte, err error) *api.Exchange {
	s, err := in.readServeResult(answer, err)
	switch {
	case err != nil:
		return api.RespondWith(refuser.Refuse(r, api.ErrInternal))
	case s.Call == 0:
		return api.RespondWith(s.Response)
	}
	n := s.Call
	return api.NewExchange(s.Jobs, func(results []api.Result) ([]api.Job, api.Response, bool) {
		s, err := in.readServeResult(in.resume(ctx, n, results))
		switch {
		case err != nil:
			return nil, refuser.Refuse(r, api.ErrInternal), true
		case s.Call == 0:
			return nil, s.Response, true
		}
		n = s.Call
		return s.Jobs, api.Response{}, false
	})
}

// readServeResult reads an answer of serve or resume. If the answer is invalid, the guest counts as failed.
func (in *Instance) readServeResult(answer []byte, err error) (abi.ServeResult, error) {
	if err != nil {
		return abi.ServeResult{}, err
	}
	s, err := abi.ParseServeResult(answer)
	if err == nil && s.Call != 0 && len(s.Jobs) == 0 || s.Call == 0 && s.Response.Status == 0 {
		err = errors.New("the module returned neither an answer nor jobs")
	}
	for i := range s.Jobs {
		s.Jobs[i].App = in.app
	}
	return s, in.invalidAnswer(err)
}

func (in *Instance) resume(ctx context.Context, call uint64, results []api.Result) ([]byte, error) {
	far := make([]abi.Result, len(results))
	for i := range results {
		far[i].Result = results[i]
	}
	in.head = abi.AppendResults(in.head[:0], call, far)
	return in.call(ctx, "resume", in.head)
}

// taskRef identifies a task of a guest.
type taskRef struct {
	in     *Instance
	number uint64
}

// StepResult is the result of a step.
type StepResult struct {
	Tasks   []core.Task
	More    bool // step again soon
	Orphans bool // unreferenced pictures may exist
}

// step calls the export step.
func (in *Instance) step(ctx context.Context, s abi.Step) (StepResult, error) {
	answer, err := in.call(ctx, "step", s.Marshal())
	if err != nil {
		return StepResult{}, err
	}
	result, err := abi.ParseStepResult(answer)
	if err := in.invalidAnswer(err); err != nil {
		return StepResult{}, err
	}
	out := StepResult{More: result.More, Orphans: result.Orphans}
	for i := range result.Tasks {
		t := &result.Tasks[i]
		t.Job.App = in.app
		out.Tasks = append(out.Tasks, core.Task{Picture: &t.Job, Ref: taskRef{in, t.Number}})
	}
	if result.Error != "" {
		err = errors.New(result.Error)
	}
	return out, err
}

// Take returns at most n tasks that are due by the host's clock. With an error it also returns the tasks that it took before the error.
func (in *Instance) Take(ctx context.Context, n int) ([]core.Task, error) {
	s, err := in.step(ctx, abi.Step{Take: n, Idle: true})
	return s.Tasks, err
}

// Done passes a task's result to the guest.
func (in *Instance) Done(ctx context.Context, t core.Task, r core.Result) error {
	ref, ok := t.Ref.(taskRef)
	if !ok || ref.in != in {
		return fmt.Errorf("%w: the task belongs to another instance", ErrCrashed)
	}
	_, err := in.step(ctx, abi.Step{Done: []abi.TaskResult{{Task: ref.number, Result: abi.Result{Result: r.Picture}}}, Idle: true})
	return err
}

// Step does some background work, including a few milliseconds of a training.
func (in *Instance) Step(ctx context.Context) (StepResult, error) { return in.step(ctx, abi.Step{}) }

// Ask passes a question that is not a request to the guest, and returns the value of its reply. It returns the guest's error, or ErrCrashed
// if the guest has failed.
func (in *Instance) Ask(ctx context.Context, q abi.Query) ([]byte, error) {
	answer, err := in.call(ctx, "ask", q.Marshal())
	if err != nil {
		return nil, err
	}
	value, guestErr, err := abi.ParseReply(answer)
	if err := in.invalidAnswer(err); err != nil {
		return nil, err
	}
	return value, guestErr
}

// Sync passes an event to the machine of the application's replica. A nil event only asks for the status. Sync returns the error of the
// guest's store, or ErrCrashed if the guest has failed. After ErrCrashed the machine's state outside the store is lost.
func (in *Instance) Sync(ctx context.Context, e replica.Event) (abi.SyncResult, error) {
	in.head = abi.AppendEvent(in.head[:0], e)
	answer, err := in.call(ctx, "sync", in.head)
	if err != nil {
		return abi.SyncResult{}, err
	}
	s, err := abi.ParseSyncResult(answer)
	if err := in.invalidAnswer(err); err != nil {
		return abi.SyncResult{}, err
	}
	return s, s.Err
}
