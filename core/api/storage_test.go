package api_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
)

const overQuota = `"code":11006,"description":"Account limits exceeded"`

// newLimitedEstate returns an estate whose account anna may store so much, with two applications of it.
func newLimitedEstate(t *testing.T, l api.StorageLimits) (e *estate, a, b *tenant) {
	e = newEstate(t, nil)
	l.Advice = "delete inputs to make room"
	e.Accounts.Storage = map[string]api.StorageLimits{"anna": l}
	return e, e.settle("anna", 1), e.settle("anna", 2)
}

// add adds inputs by URL and returns the status and how many were refused for the quota.
func (e *estate) add(n *tenant, ids ...string) (status, refused int) {
	e.Helper()
	var inputs []string
	for _, id := range ids {
		inputs = append(inputs, fmt.Sprintf(`{"id":%q,"data":{"image":{"url":"http://pictures.test/red.png?%[1]s"}}}`, id))
	}
	r := e.serve(n, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[` + strings.Join(inputs, ",") + `]}`)})
	return r.Status, strings.Count(string(r.Body), overQuota)
}

func (e *estate) checkStored(want core.StorageUsage) {
	e.Helper()
	got, err := e.Engine.StorageUsage("anna")
	if err != nil || got.Inputs != want.Inputs || want.Bytes > 0 && got.Bytes != want.Bytes {
		e.Errorf("Stored = %+v, %v, want %+v", got, err, want)
	}
}

// TestStorageInputs has the inputs of all applications of an account count, through deletions and a restart. An
// item beyond the limit is refused alone, and other accounts are not limited.
func TestStorageInputs(t *testing.T) {
	e, a, b := newLimitedEstate(t, api.StorageLimits{Inputs: 4})
	if status, refused := e.add(a, "1", "2", "3"); status != 200 || refused != 0 {
		t.Fatalf("three of four = %d, %d refused", status, refused)
	}
	if status, refused := e.add(b, "4", "5", "6"); status != 207 || refused != 2 {
		t.Errorf("three more, in the other application = %d, %d refused, want 207, 2", status, refused)
	}
	if status, refused := e.add(a, "7"); status != 400 || refused != 1 {
		t.Errorf("one beyond = %d, %d refused", status, refused)
	}
	e.checkStored(core.StorageUsage{Inputs: 4})
	e.Open(t, e.Store)
	if status, refused := e.add(a, "7"); status != 400 || refused != 1 {
		t.Errorf("one beyond, after a restart = %d, %d refused", status, refused)
	}
	e.call(a, "DELETE", "/v2/inputs/2", "")
	if status, refused := e.add(b, "7", "8"); status != 207 || refused != 1 {
		t.Errorf("two where one was deleted = %d, %d refused", status, refused)
	}
	e.call(a, "DELETE", "/v2/inputs", `{"delete_all":true}`)
	if status, refused := e.add(a, "1", "2"); status != 200 || refused != 0 {
		t.Errorf("two after all of an application were deleted = %d, %d refused", status, refused)
	}
	e.checkStored(core.StorageUsage{Inputs: 4})
	if err := e.Engine.Register.DeleteApp(t.Context(), register.Caller{Account: "anna"}, b.App); err != nil {
		t.Fatal(err)
	}
	e.checkStored(core.StorageUsage{Inputs: 2})
	if status, refused := e.add(a, "9", "10", "11"); status != 207 || refused != 1 {
		t.Errorf("three where an application with two was deleted = %d, %d refused", status, refused)
	}
	other, operator := e.settle("bert", 3), e.settle("", 4)
	for _, n := range []*tenant{other, operator} {
		if status, _ := e.add(n, "1", "2", "3", "4", "5"); status != 200 {
			t.Errorf("five inputs of an account without limits = %d", status)
		}
	}
	delete(e.Accounts.Storage, "anna")
	if status, _ := e.add(a, "12", "13", "14"); status != 200 {
		t.Errorf("three more without a limit = %d", status)
	}
	e.Accounts.Storage["anna"] = api.StorageLimits{Inputs: 8}
	if status, refused := e.add(a, "15", "16"); status != 207 || refused != 1 {
		t.Errorf("two more with a limit again = %d, %d refused", status, refused)
	}
}

// TestStorageBytes counts pictures and records, those that are fetched later too. A picture beyond the limit ends its
// input with an error, and metadata beyond it is refused.
func TestStorageBytes(t *testing.T) {
	e, a, _ := newLimitedEstate(t, api.StorageLimits{Bytes: 40_000})
	add := func(id, picture string) (int, string) {
		r := e.serve(a, api.Request{Method: "POST", Path: "/v2/inputs", Body: fmt.Appendf(nil, `{"inputs":[{"id":%q,"data":{"image":{"base64":%q}}}]}`, id, picture)})
		return r.Status, string(r.Body)
	}
	if status, body := add("1", bigPicture(20_000)); status != 200 {
		t.Fatalf("a picture below the limit = %d %s", status, body)
	}
	if status, body := add("2", bigPicture(20_001)); status != 400 || !strings.Contains(body, overQuota) ||
		!strings.Contains(body, "Storage limit: the account may store 40000 bytes; delete inputs to make room.") {
		t.Errorf("a picture beyond the limit = %d %s", status, body)
	}
	e.work(0)
	refused, _ := base64.StdEncoding.DecodeString(bigPicture(20_001))
	p, err := e.Engine.Partition(a.App)
	if err != nil {
		t.Fatal(err)
	}
	v := p.View()
	if _, err := v.DerivedOf(e.Engine.Models([32]byte{}).Base(), blob.Sum(refused), raster.Crop{}); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("what was derived from a refused picture: %v, want ErrNotFound", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if has, err := e.Blobs.Has(t.Context(), blob.Sum(refused)); has || err != nil {
		t.Errorf("a refused picture is stored: %v, %v", has, err)
	}
	meta := func(n int) (int, string) {
		r := e.serve(a, api.Request{Method: "PATCH", Path: "/v2/inputs", Body: fmt.Appendf(nil, `{"action":"overwrite","inputs":[{"id":"1","data":{"metadata":{"k":%q}}}]}`, strings.Repeat("x", n))})
		return r.Status, string(r.Body)
	}
	if status, body := meta(1000); status != 200 {
		t.Errorf("metadata below the limit = %d %s", status, body)
	}
	if status, body := meta(25_000); status != 400 || !strings.Contains(body, overQuota) {
		t.Errorf("metadata beyond the limit = %d %s", status, body)
	}
	before, err := e.Engine.StorageUsage("anna")
	if err != nil || before.Bytes < 21_000 || before.Bytes > 40_000 {
		t.Fatalf("Stored = %+v, %v", before, err)
	}
	e.Open(t, e.Store)
	e.checkStored(before)
	l := e.Accounts.Storage["anna"]
	l.Bytes = before.Bytes + 1000
	e.Accounts.Storage["anna"] = l
	if status, _ := e.add(a, "url"); status != 200 {
		t.Fatalf("an input without its picture = %d", status)
	}
	l.Bytes = before.Bytes
	e.Accounts.Storage["anna"] = l
	e.work(0)
	if body := string(e.serve(a, api.Request{Method: "GET", Path: "/v2/inputs/url"}).Body); !strings.Contains(body, overQuota) {
		t.Errorf("an input whose picture is beyond the limit: %s", body)
	}
	e.call(a, "DELETE", "/v2/inputs", `{"delete_all":true}`)
	e.checkStored(core.StorageUsage{})
}

// bigPicture is a GIF of n bytes, in base64: what follows its end is ignored.
func bigPicture(n int) string {
	gif, _ := base64.StdEncoding.DecodeString("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
	return base64.StdEncoding.EncodeToString(append(gif, make([]byte, n-len(gif))...))
}

// TestStorageOfPredictedPictures refuses a picture in a predict call that would be kept beyond the limit, and answers for a URL.
func TestStorageOfPredictedPictures(t *testing.T) {
	e, a, _ := newLimitedEstate(t, api.StorageLimits{Bytes: 30_000})
	predict := func(image string) (int, string) {
		r := e.serve(a, api.Request{Method: "POST", Path: "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", Body: []byte(`{"inputs":[{"data":{"image":{` + image + `}}}]}`)})
		return r.Status, string(r.Body)
	}
	picture := `"base64":"` + bigPicture(20_000) + `"`
	if status, body := predict(picture); status != 200 {
		t.Fatalf("the first picture = %d %s", status, body)
	}
	if status, body := predict(picture); status != 400 || !strings.Contains(body, overQuota) {
		t.Errorf("the second picture = %d %s", status, body)
	}
	if status, body := predict(`"url":"http://pictures.test/red.png"`); status != 200 {
		t.Errorf("a URL = %d %s", status, body)
	}
}

// TestStorageUnderRaces has writers of two applications of an account race: exactly as many inputs are stored as may.
func TestStorageUnderRaces(t *testing.T) {
	e, a, b := newLimitedEstate(t, api.StorageLimits{Inputs: 20})
	var done sync.WaitGroup
	var mu sync.Mutex
	codes := map[fold.Code]int{}
	for i := range 64 {
		app := []*tenant{a, b}[i%2].App
		done.Go(func() {
			p, err := e.Engine.Partition(app)
			if err != nil {
				t.Error(err)
				return
			}
			verdicts, err := p.Submit(t.Context(), "k", []log.Body{&log.InputCreate{ID: fmt.Sprint(i), URL: fmt.Sprint("http://a.test/", i), AllowDuplicate: true}}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			codes[verdicts[0].Code]++
		})
	}
	done.Wait()
	if codes[fold.OK] != 20 || codes[fold.Refused] != 44 {
		t.Errorf("verdicts %v, want 20 ok and 44 refused", codes)
	}
	e.checkStored(core.StorageUsage{Inputs: 20})
}
