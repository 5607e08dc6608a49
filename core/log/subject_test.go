package log_test

import (
	"reflect"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
)

// TestSubjects checks that SubjectOf knows each body that names a thing by its dot.
func TestSubjects(t *testing.T) {
	kinds := map[string]log.Subject{"Input": log.InputSubject, "Model": log.ModelSubject, "Workflow": log.WorkflowSubject}
	for _, body := range logtest.Bodies() {
		want, wantDot := log.NoSubject, log.Dot{Writer: 3, Seq: 5}
		value := reflect.ValueOf(body).Elem()
		for name, kind := range kinds {
			if f := value.FieldByName(name); f.IsValid() && f.Type() == reflect.TypeFor[log.Dot]() {
				f.Set(reflect.ValueOf(wantDot))
				want = kind
			}
		}
		if kind, dot := log.SubjectOf(body); want != log.NoSubject && (kind != want || dot != wantDot) {
			t.Errorf("the subject of %T is %q, %v, want %q", body, kind, dot, want)
		}
	}
}
