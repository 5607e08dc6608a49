package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"golang.org/x/image/colornames"
)

// colorNames are the extended colour keywords of CSS Color Module Level 3 (W3C), in the API's capitalization
// and with one spelling of grey. Their values are those of package colornames.
var colorNames = strings.Fields(`
	AliceBlue AntiqueWhite Aqua Aquamarine Azure Beige Bisque Black BlanchedAlmond Blue BlueViolet Brown
	BurlyWood CadetBlue Chartreuse Chocolate Coral CornflowerBlue Cornsilk Crimson Cyan DarkBlue DarkCyan
	DarkGoldenRod DarkGray DarkGreen DarkKhaki DarkMagenta DarkOliveGreen DarkOrange DarkOrchid DarkRed
	DarkSalmon DarkSeaGreen DarkSlateBlue DarkSlateGray DarkTurquoise DarkViolet DeepPink DeepSkyBlue DimGray
	DodgerBlue FireBrick FloralWhite ForestGreen Fuchsia Gainsboro GhostWhite Gold GoldenRod Gray Green
	GreenYellow HoneyDew HotPink IndianRed Indigo Ivory Khaki Lavender LavenderBlush LawnGreen LemonChiffon
	LightBlue LightCoral LightCyan LightGoldenRodYellow LightGray LightGreen LightPink LightSalmon
	LightSeaGreen LightSkyBlue LightSlateGray LightSteelBlue LightYellow Lime LimeGreen Linen Magenta Maroon
	MediumAquaMarine MediumBlue MediumOrchid MediumPurple MediumSeaGreen MediumSlateBlue MediumSpringGreen
	MediumTurquoise MediumVioletRed MidnightBlue MintCream MistyRose Moccasin NavajoWhite Navy OldLace Olive
	OliveDrab Orange OrangeRed Orchid PaleGoldenRod PaleGreen PaleTurquoise PaleVioletRed PapayaWhip PeachPuff
	Peru Pink Plum PowderBlue Purple Red RosyBrown RoyalBlue SaddleBrown Salmon SandyBrown SeaGreen SeaShell
	Sienna Silver SkyBlue SlateBlue SlateGray Snow SpringGreen SteelBlue Tan Teal Thistle Tomato Turquoise
	Violet Wheat White WhiteSmoke Yellow YellowGreen`)

// colorTable returns the content of colors.tsv.
func colorTable() []byte {
	var b bytes.Buffer
	b.WriteString("concept_id\tname\thex\n")
	for _, name := range colorNames {
		c := colornames.Map[strings.ToLower(name)]
		fmt.Fprintf(&b, "%s\t%s\t#%02x%02x%02x\n", colorID(name), name, c.R, c.G, c.B)
	}
	return b.Bytes()
}

// colorID returns a concept ID that is derived from the name, so that it never changes.
func colorID(name string) string {
	h := sha256.Sum256([]byte("color/" + name))
	return "ai_" + strings.ToLower(base32.StdEncoding.EncodeToString(h[:5]))
}
