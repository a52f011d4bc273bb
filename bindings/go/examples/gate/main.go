// Gate fails if a program waits for something that could be mended: for tests of performance in CI.
//
//	gate 0.2 app.trace...
//
// prints the findings of each trace that cost at least this share of its time. The exit status is 1 if there are any.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"trail"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: gate SHARE TRACE...")
	}
	share, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fail(err)
	}
	status := 0
	for _, path := range os.Args[2:] {
		findings, err := trail.File(path).Findings(context.Background())
		if err != nil {
			fail(err)
		}
		for _, finding := range findings {
			if finding.Weight >= share {
				fmt.Printf("%s: %s\n", path, finding.Text)
				status = 1
			}
		}
	}
	os.Exit(status)
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}
