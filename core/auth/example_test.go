package auth_test

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
)

func ExampleNeed_Check() {
	keyScopes := auth.SetOf([]string{"Inputs_Get", "Inputs_Add"})
	fmt.Println(auth.NeedInputs.Check(keyScopes), auth.NeedInputs.Shows(keyScopes, auth.ConceptsGet))
	fmt.Println(auth.NeedInputsAdd.Check(keyScopes))
	// Output:
	// <nil> false
	// insufficient scopes: the key lacks Predict
}

func ExampleSuggestedScopes() {
	fmt.Println(auth.SuggestedScopes("Inputs_Delete"))
	// Output: [Inputs_Add Inputs_Get]
}

func ExampleLimiter_Take() {
	l := auth.NewLimiter(auth.Rate{PerSecond: 10, Burst: 2}, 1000)
	now := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	caller := auth.HashKey("0123456789abcdef0123456789abcdef")
	for range 3 {
		fmt.Println(l.Take(caller, now))
	}
	fmt.Println(l.Take(caller, now.Add(100*time.Millisecond)))
	// Output:
	// <nil>
	// <nil>
	// too many requests: at most 10 requests per second, and 2 at once; try again in 1 s
	// <nil>
}
