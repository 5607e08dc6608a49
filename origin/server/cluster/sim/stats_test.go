package sim

import "reflect"

// Add adds o to the counts.
func (s *Stats) Add(o Stats) {
	sum, more := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}
