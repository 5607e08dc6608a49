// Command program is a module that needs every table of the runtime. Its stack grows, the collector reads the stack, and deferred calls
// recover.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

type node struct {
	next *node
	text string
}

// deep returns the length of a chain of n nodes, which only the stack refers to while the collector runs.
//
//go:noinline
func deep(n int, last *node) int {
	if n == 0 {
		runtime.GC()
		length := 0
		for ; last != nil; last = last.next {
			length += len(last.text)
		}
		return length
	}
	var room [32]*node
	room[n%32] = &node{next: last, text: strings.Repeat("x", n%3)}
	return deep(n-1, room[n%32])
}

func index(all []int, i int) int { return all[i] } // inlined

//go:noinline
func fails(i int) (answer string) {
	defer func() { answer += fmt.Sprint(recover()) }()
	for j := range 3 {
		defer func() { answer += fmt.Sprint(j) }()
	}
	return fmt.Sprint(index([]int{1, 2}, i))
}

// Caller exists so that a stack trace has a name to print.
//
//go:noinline
func Caller(all []int) int { return index(all, 7) }

func main() {
	done := make(chan int)
	go func() { done <- deep(500, nil) }()
	fmt.Println(<-done, fails(1), fails(2))
	if len(os.Args) > 1 {
		Caller(nil)
	}
}
