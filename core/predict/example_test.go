package predict_test

import (
	"fmt"
	"os"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

func ExampleAnalyser_Analyse() {
	set, err := predict.Load(os.DirFS("../../models"))
	if err != nil {
		fmt.Println(err)
		return
	}
	picture, err := os.ReadFile("../../web/samples/02-coffee-with-a-heart.jpg")
	if err != nil {
		fmt.Println(err)
		return
	}
	general := set.General()
	a := set.NewAnalyser(raster.Limits{}) // one per thread, used again
	out, err := a.Analyse(picture, raster.Crop{}, general.Want())
	if err != nil {
		fmt.Println(err)
		return
	}
	values := general.Values(&out)
	for _, i := range general.Top(nil, values, 3, 0) {
		name, _ := set.Names().Name(general.Concepts[i].ID, "fr")
		fmt.Printf("%s %.2f\n", name, values[i])
	}
	// Output:
	// café 0.99
	// boisson 0.76
	// intérieur 0.72
}
