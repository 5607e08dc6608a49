package api_test

import (
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestReplicaStoresTokenOfOperation: a replica stores the client and the generation of the token with which an operation was requested. For
// a key it stores neither.
func TestReplicaStoresTokenOfOperation(t *testing.T) {
	c := apitest.NewReplica(t, apitest.Tiny(t), nil)
	client, err := c.Origin.Engine.Register.Client(c.App)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := c.Tokens.Issue(auth.Claims{App: c.App, Client: client.ID, Generation: client.Generation})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Partition(t)
	for i, tt := range []struct {
		authorization string
		want          partition.Token
	}{
		{"Bearer " + token, partition.Token{Client: client.ID, Generation: client.Generation}},
		{"Key " + c.Key, partition.Token{}},
	} {
		got := c.Serve(t, api.Request{Method: "POST", Path: "/v2/concepts", Body: []byte(`{"concepts":[{"id":"c` + string(rune('0'+i)) + `"}]}`), Authorization: tt.authorization})
		if got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		issued, _ := p.Outbox()
		var last log.Dot
		err := p.Pending(issued-1, func(_ uint64, op log.Op) bool {
			last = op.Dot
			return false
		})
		noted, failed := p.TokenOf(last)
		err = errors.Join(err, failed)
		if err != nil || issued != uint64(i+1) || noted != tt.want {
			t.Errorf("operation %d is noted as %+v, %v, want %+v", issued, noted, err, tt.want)
		}
	}
}
