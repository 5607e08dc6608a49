package abi

import (
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Step asks an engine for a little of its own work.
type Step struct {
	Take int      // at most so many new tasks
	Done []Handed // tasks that are handed back
	Idle bool     // only what is wanted of tasks, no upkeep
}

// Handed is a task with what became of it.
type Handed struct {
	Task   uint64
	Result Result
}

// Marshal returns the envelope.
func (s *Step) Marshal() []byte {
	e := encoder(nil)
	e.Uint(1, uint64(max(s.Take, 0)))
	for i := range s.Done {
		at := e.Open(2)
		e.Uint(1, s.Done[i].Task)
		in := e.Open(2)
		putResult(e, &s.Done[i].Result)
		e.Close(in)
		e.Close(at)
	}
	e.Bool(3, s.Idle)
	return e.Bytes(nil)
}

// ParseStep reads an envelope. Pictures are borrowed.
func ParseStep(data []byte) (Step, error) {
	var s Step
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			s.Take = d.Int()
		case 2:
			var h Handed
			m := d.Message()
			for m.Next() {
				switch m.Number {
				case 1:
					h.Task = m.Uint()
				case 2:
					h.Result = getResult(m.Message())
				}
			}
			s.Done = append(s.Done, h)
		case 3:
			s.Idle = d.Bool()
		}
	}
	return s, envelope("step", d)
}

// Stepped is what a step came to.
type Stepped struct {
	More     bool   // step again soon
	Tasks    []Task // to be done and handed back
	Training bool   // a training is under way in the guest
	Error    string // what the store said; what was handed back is due again
	Strays   bool   // pictures may be left that nothing claims: whoever lent them looks through them all
}

// Task is a job that no request waits for, with a number to hand it back by.
type Task struct {
	Number uint64
	Job    api.Job
}

// Append writes the envelope into buf's memory.
func (s *Stepped) Append(buf []byte) []byte {
	e := encoder(buf)
	e.Bool(1, s.More)
	for i := range s.Tasks {
		at := e.Open(2)
		e.Uint(1, s.Tasks[i].Number)
		in := e.Open(2)
		putJob(e, &s.Tasks[i].Job)
		e.Close(in)
		e.Close(at)
	}
	e.Bool(3, s.Training)
	e.Text(4, s.Error)
	e.Bool(5, s.Strays)
	return e.Bytes(nil)
}

// ParseStepped reads an envelope. The jobs' data is borrowed.
func ParseStepped(data []byte) (Stepped, error) {
	var s Stepped
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			s.More = d.Bool()
		case 2:
			var t Task
			m := d.Message()
			for m.Next() {
				switch m.Number {
				case 1:
					t.Number = m.Uint()
				case 2:
					t.Job = getJob(m.Message()).Job
				}
			}
			s.Tasks = append(s.Tasks, t)
		case 3:
			s.Training = d.Bool()
		case 4:
			s.Error = d.Text()
		case 5:
			s.Strays = d.Bool()
		}
	}
	return s, envelope("stepped", d)
}
