package abi

import "github.com/sightline-dev/sightline/core/api"

// Step asks an engine for some background work.
type Step struct {
	Take int          // maximum number of new tasks
	Done []TaskResult // tasks that are handed back
	Idle bool         // tasks only, no maintenance
}

// TaskResult is a task with its result.
type TaskResult struct {
	Task   uint64
	Result Result
}

// step is a Step as it is written.
//
//field:message envelope of step
//field:pages put
type step struct {
	Take int          `wire:"1"` // maximum number of new tasks
	Done []taskResult `wire:"2"` // tasks that are handed back
	Idle bool         `wire:"3"` // tasks only, no maintenance
}

// taskResult is a task with its result.
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

// ParseStep reads an envelope. Pictures are borrowed.
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
	More     bool   `wire:"1"` // step again soon
	Tasks    []Task `wire:"2"` // tasks that the host does and hands back
	Training bool   `wire:"3"` // a training is under way in the guest: a step does a few milliseconds of it
	Error    string `wire:"4"` // error of the store: the tasks that were handed back are due again
	Orphans  bool   `wire:"5"` // the host looks for pictures that nothing claims, where it keeps them
}

// Task is a job that no request waits for, with a number to hand it back by.
type Task struct {
	Number uint64  `wire:"1"`
	Job    api.Job `wire:"2,always"`
}

// Append writes the envelope into buf's memory.
func (s *StepResult) Append(buf []byte) []byte { return encodeStepResult(buf, s) }

// ParseStepped reads an envelope. The jobs' data is borrowed.
func ParseStepped(data []byte) (StepResult, error) { return decodeStepResult(data) }
