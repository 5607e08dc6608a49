package identity_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
)

// A second machine joins a cluster. The secret's hash and the messages go through etcd and the network, which the example leaves out.
func ExampleJoin() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

	// sightline cluster create, and sightline cluster token
	address, err := identity.ParseAddress("10.0.0.5:7000")
	check(err)
	first, err := identity.Create(identity.Options{Address: address, S3: "https://s3.example/bucket"}, now, rand.Reader)
	check(err)
	token, err := first.NewToken(rand.Reader)
	check(err)

	// sightline cluster join TOKEN
	token, err = identity.ParseToken(token.Text())
	check(err)
	address, err = identity.ParseAddress("10.0.0.6:7000")
	check(err)
	join, err := identity.NewJoin(token, address, "1.0.0", now, rand.Reader)
	check(err)
	response, err := first.Admit(join.Request, now, rand.Reader) // on the first node
	check(err)
	second, err := join.Accept(response, 0, now, rand.Reader)
	check(err)

	fmt.Println(second.Node.Address, second.Peers[0].Address, second.Cluster.ID == first.Cluster.ID)
	// Output: 10.0.0.6:7000 10.0.0.5:7000 true
}
