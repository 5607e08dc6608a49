package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestPushBeyondStorage: inputs from a replica count like inputs from API calls. The origin refuses operations beyond the
// limit of the account, which become conflicts at the replica, and accepts the operations after them.
func TestPushBeyondStorage(t *testing.T) {
	w := newWorld(t, nil)
	n := w.NewTenant(t, "anna", "en")
	w.Accounts.Storage = map[string]api.StorageLimits{"anna": {Inputs: 2, Advice: "delete inputs to make room"}}
	r := w.join(n.App, n.Key)
	h := r.upload(apitest.Picture("red.png"))
	create := func(id string) log.Body { return &log.InputCreate{ID: id, Blob: h, ContentType: "image/png"} }
	ops := r.next(create("a"), create("b"), create("c"), &log.ConceptCreate{ID: "tree", Name: "tree", Language: "en"})
	out := r.mustPush(ops)
	want := "quota: the account may store 2 inputs; delete inputs to make room"
	if out.Accepted != 4 || len(out.Verdicts) != 1 || out.Verdicts[0].Seq != 3 || out.Verdicts[0].Code != uint32(fold.Refused) || out.Verdicts[0].Detail != want {
		t.Errorf("pushed %+v, want the third refused: %s", out, want)
	}
	out = r.mustPush(append(ops[3:], r.next(&log.InputDelete{Input: ops[0].Dot}, create("d"))...))
	if out.Accepted != 6 || len(out.Verdicts) != 0 {
		t.Errorf("after a deletion: %+v", out)
	}
	if got, err := w.Engine.StorageUsage("anna"); got.Inputs != 2 || err != nil {
		t.Errorf("Stored = %+v, %v", got, err)
	}
}

// TestBytesOfADayAreLimited: an application may send at most as many bytes a day as its account may store, counting pictures and operations
// that store nothing. The last request that begins below the limit may exceed it.
func TestBytesOfADayAreLimited(t *testing.T) {
	limit := int64(0)
	w := newWorld(t, func(o *feed.Options) {
		o.Storage = func(string) (int64, error) { return limit, nil }
	})
	r := w.join(w.App, w.Key)
	data := func(i int) []byte { return fmt.Append(nil, i, strings.Repeat("x", 1000)) }
	r.upload(data(0))
	w.Now = w.Now.Add(24 * time.Hour)
	limit = 2500
	for i := range 3 {
		r.upload(data(1 + i))
	}
	upload := func() *wire.Refusal { return r.mustRefuse("PUT", r.blob(blob.Sum(data(4))), data(4)) }
	if no := upload(); no.Code != wire.RefusedQuota || no.Value != 2500 || no.WaitMillis == 0 {
		t.Errorf("the fourth upload was refused with %+v", no)
	}
	meta := r.next(&log.InputMeta{Input: log.Dot{Writer: r.writer, Seq: 9}, Writes: []log.MetaWrite{{JSON: fmt.Appendf(nil, "%q", data(5))}}})
	m := r.push(meta)
	w.checkUnchanged("a push beyond the limit", func() {
		if no := r.mustRefuse("POST", "/v2/sync/push", m.Encode()); no.Code != wire.RefusedQuota || no.Value != 2500 {
			t.Errorf("a push was refused with %+v", no)
		}
	})
	w.Now = w.Now.Add(12 * time.Hour)
	if out := r.mustPush(meta); out.Accepted != 1 {
		t.Errorf("half a day later: %+v", out)
	}
	if no := upload(); no.Code != wire.RefusedQuota {
		t.Errorf("the push was not counted: %+v", no)
	}
	limit = 0
	w.Now = w.Now.Add(24 * time.Hour)
	r.upload(data(4))
}
