//go:build ignore

// Generate writes openapi.json.
package main

import (
	"log"
	"os"

	"github.com/sightline-dev/sightline/web/openapi/describe"
)

func main() {
	document, err := describe.Document()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("openapi.json", document, 0o644); err != nil {
		log.Fatal(err)
	}
}
