package partition_test

import (
	"context"
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// A write returns the verdict of each of its operations, and a view shows it from then on.
func ExamplePartition_Submit() {
	p, err := partition.OpenOrigin(partition.Options{Store: memkv.New(), App: catalog.AppID{15: 1}, Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	verdicts, err := p.Submit(context.Background(), "key", []log.Body{
		&log.InputCreate{ID: "cat-1", Blob: blob.Sum([]byte("a picture")), ContentType: "image/png", Labels: []log.Label{{Concept: "cat", Value: log.True}}},
		&log.InputCreate{ID: "cat-1", Blob: blob.Sum([]byte("another")), ContentType: "image/png"},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range verdicts {
		fmt.Println(v.Code, v.Detail, v.ID)
	}
	view := p.View()
	in, err := view.InputByID("cat-1")
	fmt.Println(in.Code, in.Labels[0].Concept, err, view.Close())
	// Output:
	// ok  cat-1
	// duplicate id cat-1
	// 30000 cat <nil> <nil>
}
