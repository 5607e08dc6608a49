package logtest

import "github.com/sightline-dev/sightline/core/log"

// Chooser makes random choices. It is a *rand.Rand, or a source whose choices rapid can shrink.
type Chooser interface{ IntN(n int) int }

// Pick returns one of the given words.
func Pick(c Chooser, of ...string) string { return of[c.IntN(len(of))] }

// JSON returns a JSON value for metadata. It uses the keys a, b and c only, so that writes of different values meet.
func JSON(c Chooser) []byte {
	return []byte(Pick(c, `1`, `"s"`, `{}`, `{ "a": 1 }`, `{"b":{"c":[1]},"a":null}`, `[1,2]`))
}

// Point returns a point in whole degrees.
func Point(c Chooser) *log.Point {
	return &log.Point{Longitude: float64(c.IntN(360)) - 180, Latitude: float64(c.IntN(180)) - 90}
}

// MetaWrites returns one or two writes of metadata, with paths of the keys a, b and c only.
func MetaWrites(c Chooser) (writes []log.MetaWrite) {
	for range 1 + c.IntN(2) {
		w := log.MetaWrite{Action: log.MetaAction(c.IntN(3))}
		for range c.IntN(3) {
			w.Path = append(w.Path, Pick(c, "a", "b", "c"))
		}
		switch w.Action {
		case log.MetaSet:
			w.JSON = JSON(c)
		case log.MetaAppend:
			w.JSON = []byte(Pick(c, `[7]`, `[8,9]`))
		}
		writes = append(writes, w)
	}
	return writes
}
