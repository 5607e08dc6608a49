package sim

import "reflect"

// Add adds what happened in another run; of rounds it keeps the most.
func (s *Stats) Add(o Stats) {
	rounds := max(s.Rounds, o.Rounds)
	sum, more := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	s.Rounds = rounds
}
