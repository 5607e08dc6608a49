package sim

import "reflect"

// Add adds the counts of another run. Rounds becomes the maximum of both.
func (s *Stats) Add(o Stats) {
	rounds := max(s.Rounds, o.Rounds)
	sum, more := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	s.Rounds = rounds
}
