package abi

import "github.com/sightline-dev/sightline/core/api"

// Step asks an engine for some background work.
type Step struct {
	Take int          // maximum number of new tasks
	Done []TaskResult // results of tasks that the host did
	Idle bool         // tasks only, no maintenance
}

// TaskResult is a task with its result.
type TaskResult struct {
	Task   uint64
	Result Result
}

// step is the encoded form of a Step.
//
//field:message envelope of step
//field:pages put
type step struct {
	Take int          `wire:"1"` // maximum number of new tasks
	Done []taskResult `wire:"2"` // results of tasks that the host did
	Idle bool         `wire:"3"` // tasks only, no maintenance
}

// taskResult is the encoded form of a TaskResult.
type taskResult struct {
	Task   uint64 `wire:"1"`
	Result result `wire:"2,always"`
}

// Marshal returns the envelope.
func (s *Step) Marshal() []byte {
	x := step{s.Take, make([]taskResult, len(s.Done)), s.Idle}
	for i := range s.Done {
		x.Done[i] = taskResult{s.Done[i].Task, resultOf(&s.Done[i].Result)}
	}
	return encodeStep(nil, &x)
}

// ParseStep reads an envelope. Pictures share data's memory.
func ParseStep(data []byte) (Step, error) {
	x, err := decodeStep(data)
	s := Step{Take: x.Take, Idle: x.Idle}
	for i := range x.Done {
		s.Done = append(s.Done, TaskResult{x.Done[i].Task, x.Done[i].Result.of()})
	}
	return s, err
}

// StepResult is the result of a step.
//
//field:message envelope of stepped
//field:pages get
type StepResult struct {
	More     bool   `wire:"1"` // the host should step again soon
	Tasks    []Task `wire:"2"` // tasks for the host, which returns their results in a later step
	Training bool   `wire:"3"` // the guest executes a training: each step does a few milliseconds of it
	Error    string `wire:"4"` // error of the store; the guest then hands out the returned tasks again
	Orphans  bool   `wire:"5"` // there may be unreferenced pictures: the host checks the pictures that it stores
}

// Task is a job that no request waits for. The host returns its result with Number.
type Task struct {
	Number uint64  `wire:"1"`
	Job    api.Job `wire:"2,always"`
}

// Append returns the envelope. It reuses buf's memory.
func (s *StepResult) Append(buf []byte) []byte { return encodeStepResult(buf, s) }

// ParseStepResult reads an envelope. The jobs' data shares data's memory.
func ParseStepResult(data []byte) (StepResult, error) { return decodeStepResult(data) }
