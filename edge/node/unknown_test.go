package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestQuestionsAreLimited has strangers call with unknown credentials for ten seconds. They cause one question a second, at most 64 of them
// wait, and each waits for a question that began after its call, 2 seconds at most.
func TestQuestionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a, begun := newAsker(), system.Now()
		var running sync.WaitGroup
		var mu sync.Mutex
		var asked []time.Time
		running.Go(func() {
			a.run(ctx, func(context.Context) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, system.Now())
			})
		})
		waiting, most := 0, 0
		call := func(caller string) {
			since := system.Now()
			mu.Lock()
			waiting++
			most = max(most, waiting)
			mu.Unlock()
			a.wait(ctx, caller)
			mu.Lock()
			defer mu.Unlock()
			waiting--
			waited := system.Now().Sub(since)
			if last := asked[len(asked)-1]; waited > askInterval || waited > 0 && last.Before(since) {
				t.Errorf("a call waited for %v; the last question began %v after it", waited, last.Sub(since))
			}
		}
		for i := range 100 {
			for n := range 10 {
				running.Go(func() { call(fmt.Sprint(n, i)) })
			}
			system.Pause(ctx, 100*time.Millisecond)
		}
		system.Pause(ctx, askInterval)
		mu.Lock()
		seconds := int(system.Now().Sub(begun) / time.Second)
		if len(asked) < seconds-1 || len(asked) > seconds+1 {
			t.Errorf("%d questions in %d s", len(asked), seconds)
		}
		if most > maxAsking+10 { // 10 calls begin at once, and those without a place return at once
			t.Errorf("%d calls waited", most)
		}
		mu.Unlock()
		stop()
		running.Wait()
	})
}

// TestQuestionWithoutAnswer has a call wait for an origin that does not answer: 2 seconds.
func TestQuestionWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a, since := newAsker(), system.Now()
		var running sync.WaitGroup
		running.Go(func() { a.run(ctx, func(ctx context.Context) { <-ctx.Done() }) })
		a.wait(ctx, "caller")
		if waited := system.Now().Sub(since); waited != askTime {
			t.Errorf("the call waited for %v", waited)
		}
		stop()
		running.Wait()
	})
}

// TestEdgeAsksAboutUnknownCredentials gives an edge credentials that it does not know. It asks its origin, applies the newer record, and
// refuses at once without contact and for texts that cannot be tokens.
func TestEdgeAsksAboutUnknownCredentials(t *testing.T) {
	store, now := memkv.New(), day
	c := lone(t, store, &now)
	c.asker = newAsker()
	requests := 0
	x := newAppRecord(0)
	x.Trust = catalog.Trust{Issuer: "o", Keys: []log.PublicKey{{ID: "1", Key: [32]byte{1}}}}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.URL.Path != "/v2/sync/keys" || r.URL.Query().Get("app") != anApp || r.Header.Get("Authorization") == "" {
			t.Errorf("%s", r.URL)
		}
		if r.URL.Query().Get("since") == "5" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer := wire.AppRecord{App: anApp, Seq: 5, Data: x.Encode()}
		w.Header().Set("Content-Type", wire.ContentType)
		_, _ = w.Write(answer.Encode())
	}))
	defer origin.Close()
	c.identity.Origin = origin.URL
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.asker.run(ctx, c.ask) })
	defer running.Wait()
	defer stop()
	learn := func(authorization string) {
		t.Helper()
		c.learn(t.Context(), &api.Request{Method: "GET", Path: "/v2/inputs", Authorization: authorization, Remote: "192.0.2.1"})
	}
	token := "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"1","typ":"JWT"}`)) + ".e30." + strings.Repeat("A", 86)
	one := c.of(anApp)
	learn(token) // no link runs
	link, err := synclink.New(c.options())
	if err != nil {
		t.Fatal(err)
	}
	one.link = link
	one.status.Phase = replica.Unreachable
	learn(token)
	one.status.Phase = replica.Current
	for _, noise := range []string{"Bearer x", "Bearer e30.e30." + strings.Repeat("A", 86)} {
		learn(noise)
	}
	if requests != 0 {
		t.Fatalf("%d requests without contact or without a credential", requests)
	}
	if _, ok := c.Signer("1"); ok {
		t.Fatal("the key is known before the edge asked")
	}
	learn(token)
	if _, ok := c.Signer("1"); !ok || requests != 1 {
		t.Errorf("after %d requests the key is known: %t", requests, ok)
	}
	learn("Key " + strings.Repeat("0", 32))
	if _, seq, err := catalog.Read(store, catalog.Control).AppRecordSeq(anApp); requests != 2 || seq != 5 || err != nil {
		t.Errorf("after %d requests the edge has record %d, %v", requests, seq, err)
	}
}
