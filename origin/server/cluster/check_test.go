package cluster

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// questions are questions of checks, which get their answers from the test.
type questions struct {
	asked  chan struct{}
	answer chan int64 // negative: an error
}

var errAnswer = errors.New("no answer")

func (q *questions) get(context.Context) (int64, error) {
	q.asked <- struct{}{}
	if a := <-q.answer; a >= 0 {
		return a, nil
	}
	return 0, errAnswer
}

// TestChecksShare: calls that wait share the next question. One that comes while a question is on its way does not get its answer, because etcd may
// have answered before the call came.
func TestChecksShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &questions{make(chan struct{}), make(chan int64)}
		c := &checks{get: q.get}
		var calls sync.WaitGroup
		call := func(want int64, fails error) {
			calls.Go(func() {
				if got, err := c.newest(t.Context()); got != want || !errors.Is(err, fails) {
					t.Errorf("newest = %d, %v, want %d, %v", got, err, want, fails)
				}
			})
		}
		call(1, nil)
		<-q.asked
		for range 8 {
			call(2, nil)
		}
		synctest.Wait()
		q.answer <- 1
		<-q.asked // one question for all eight
		call(0, errAnswer)
		synctest.Wait()
		q.answer <- 2
		<-q.asked
		synctest.Wait()
		q.answer <- -1
		calls.Wait()
		synctest.Wait()

		call(4, nil) // nobody asks while no call waits
		<-q.asked
		q.answer <- 4
		calls.Wait()
	})
}

// TestChecksEnd: a call whose context ends returns at once, and the calls that share its question get the answer.
func TestChecksEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &questions{make(chan struct{}), make(chan int64)}
		c := &checks{get: q.get}
		ctx, stop := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := c.newest(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("newest = %v", err)
			}
		})
		<-q.asked
		stop()
		calls.Wait()
		calls.Go(func() {
			if got, err := c.newest(t.Context()); got != 2 || err != nil {
				t.Errorf("newest = %d, %v", got, err)
			}
		})
		synctest.Wait()
		q.answer <- 1
		<-q.asked
		q.answer <- 2
		calls.Wait()
	})
}
