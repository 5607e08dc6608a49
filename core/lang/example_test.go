package lang_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sightline-dev/sightline/core/lang"
)

func ExampleTable_Search() {
	names := fstest.MapFS{}
	for _, code := range lang.Codes() {
		names[code+".tsv"] = &fstest.MapFile{Data: []byte("ai_8S2Vq3cR\tdog\nai_mFqxrph2\tcat\n")}
	}
	names["fr.tsv"] = &fstest.MapFile{Data: []byte("ai_8S2Vq3cR\tchien\nai_mFqxrph2\tpâté de chat\n")}

	table, err := lang.Read(names, []string{"ai_8S2Vq3cR", "ai_mFqxrph2"})
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
