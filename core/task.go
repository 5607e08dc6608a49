package core

import (
	"github.com/sightline-dev/sightline/core/api"
)

// Task is one piece of slow work that no request waits for. Exactly one of its exported
// fields is set, and says what is to be done:
//
//	Picture   an input's picture: fetch it, analyse it and hold it in the blobs
//
// Whoever has done it hands the task back to [Engine.Done] with the field of the same name in
// a [Result]. A task that is not handed back is handed out again when the engine has been
// opened anew: what is to be done stands in the applications' state.
type Task struct {
	Picture *api.Job
}

// Result is what became of a [Task]. A picture's is held in the blobs and released by Done.
type Result struct {
	Picture api.Result
}
