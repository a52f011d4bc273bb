// Go_names prints what Go's own analysis of v1 traces (GoroutineStats) calls each goroutine: ID, tab, name.
// It is built beside a copy of Go's internal/trace, which nothing outside Go's tree may import.
package main

import (
	"bufio"
	"fmt"
	"names/trace"
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
