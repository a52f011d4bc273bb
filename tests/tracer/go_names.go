// Go_names prints what Go's own analysis of v1 traces (GoroutineStats) calls each goroutine: ID, tab, name.
// It is built as a part of the tree of Go 1.19 or 1.21: nothing outside may import that analysis.
package main

import (
	"bufio"
	"fmt"
	"internal/trace"
	"os"
)

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	result, err := trace.Parse(bufio.NewReader(file), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for id, g := range trace.GoroutineStats(result.Events) {
		fmt.Printf("%d\t%s\n", id, g.Name)
	}
}
