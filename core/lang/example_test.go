package lang_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/lang"
)

func ExampleTable_Search() {
	names := map[string][]byte{}
	for _, code := range lang.Codes() {
		names[code] = []byte("ai_8S2Vq3cR\tdog\nai_mFqxrph2\tcat\n")
	}
	names["fr"] = []byte("ai_8S2Vq3cR\tchien\nai_mFqxrph2\tpâté de chat\n")

	table, err := lang.Parse(names, []string{"ai_8S2Vq3cR", "ai_mFqxrph2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := table.Search("PATE*", "fr")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range ids {
		name, _ := table.Name(id, "fr")
		fmt.Println(id, name)
	}
	// Output: ai_mFqxrph2 pâté de chat
}
