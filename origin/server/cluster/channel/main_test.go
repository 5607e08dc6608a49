package channel_test

import (
	"testing"

	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }
