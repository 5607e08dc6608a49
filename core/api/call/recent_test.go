package call

import "testing"

// TestRecentBounded checks that the values in memory are bounded, and that the last used ones stay.
func TestRecentBounded(t *testing.T) {
	const size = 10
	r := newRecent[int, string](10 * size)
	find := func(key int) bool {
		_, ok := r.Find(key)
		return ok
	}
	for i := range 100 {
		r.Put(i, "value", size)
		r.Put(i, "another", size)
		if !find(0) {
			t.Fatalf("the value in use was removed after %d others", i)
		}
	}
	count := 0
	for i := range 100 {
		if find(i) {
			count++
		}
	}
	if count != 10 || r.bytes != 10*size || r.order.Len() != len(r.byKey) {
		t.Errorf("%d values of %d bytes are stored, %d in order, %d by key; want 10", count, r.bytes, r.order.Len(), len(r.byKey))
	}
	if got, _ := r.Find(98); got != "value" || find(50) {
		t.Error("the values that were used last are not stored")
	}
	r.Put(-1, "large", 20*size)
	if !find(-1) || r.order.Len() != 1 {
		t.Errorf("%d values are stored with one that is larger than the limit", r.order.Len()-1)
	}
}
