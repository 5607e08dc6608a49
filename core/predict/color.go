package predict

// Color is one of the 140 colour names of the W3C.
type Color struct {
	ID   string // concept id
	Name string // such as "WhiteSmoke"
	Hex  string // "#f5f5f5"
}

// ColorShare is how much of a picture has a colour.
type ColorShare struct {
	W3C    Color
	RawHex string  // mean colour of the pixels nearest to W3C, "#rrggbb"
	Value  float32 // their share of the picture, 0…1
}
