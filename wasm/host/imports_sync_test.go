package host

import (
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// book stores the app record of one application.
type book struct {
	app  string
	seq  uint64
	data string
}

var errOtherApp = errors.New("another application's")

func (b *book) AppRecordSeq(app string) (uint64, error) {
	if app != b.app {
		return 0, errOtherApp
	}
	return b.seq, nil
}

func (b *book) ApplyAppRecord(app string, seq uint64, data []byte) error {
	if app != b.app {
		return errOtherApp
	}
	b.seq, b.data = seq, string(data)
	return nil
}

// TestImportsForReplicas tests the imports for replicas: pictures by hash, and the app record.
func TestImportsForReplicas(t *testing.T) {
	const room, size = 40 << 10, 8 << 10
	p := newProber(t)
	pictures, register := blob.NewMemory(blob.Options{}), &book{app: claims.App}
	p.services.Blobs, p.services.AppRecords = pictures, register
	picture, none := blob.Sum([]byte("picture")), blob.Sum(nil)
	hash, _ := p.at(50_000, string(picture[:]))
	other, _ := p.at(50_100, string(none[:]))
	data, n := p.at(50_200, "picture")
	for _, tt := range []struct {
		name string
		args []uint64
		want int64
	}{
		{"picture_has", []uint64{hash}, int64(abi.BlobNotFound)},
		{"picture_get", []uint64{hash, room, size}, -int64(abi.BlobNotFound)},
		{"picture_put", []uint64{other, data, n}, int64(abi.Other)}, // another hash
		{"picture_put", []uint64{hash, data, n}, 0},
		{"picture_has", []uint64{hash}, 0},
		{"picture_get", []uint64{hash, room, 3}, int64(n)},
		{"picture_get", []uint64{hash, room, size}, int64(n)},
		{"register_seq", nil, -int64(abi.Other)}, // an instance of all applications has no app record
		{"register_take", []uint64{7, data, n}, int64(abi.Other)},
	} {
		if got := p.name(tt.name, tt.args...); got != tt.want {
			t.Errorf("%s%v = %d, want %d", tt.name, tt.args, got, tt.want)
		}
	}
	if got := p.read(room, n); got != "picture" {
		t.Errorf("picture_get gives %q", got)
	}

	var err error
	if p.in.host, err = hostcalls.New(p.services, claims.App); err != nil {
		t.Fatal(err)
	}
	if got := p.name("register_take", 7, data, n); got != 0 || register.data != "picture" {
		t.Errorf("register_take = %d, with %q", got, register.data)
	}
	if got := p.name("register_seq"); got != 7 {
		t.Errorf("register_seq = %d, want 7", got)
	}
	register.app = "another"
	if got := p.name("register_seq"); got != -int64(abi.Other) {
		t.Errorf("register_seq that fails = %d", got)
	}
}
