// Go_names_v2 prints what Go's own analysis (Summarizer) calls each goroutine: ID, tab, name.
// It is built as a part of the tree of Go 1.23 or newer: nothing outside may import that analysis.
package main

import (
	"bufio"
	"fmt"
	"internal/trace"
	"io"
	"os"
)

func summarize(path string) (*trace.Summary, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	reader, err := trace.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, err
	}
	summarizer := trace.NewSummarizer()
	for {
		event, err := reader.ReadEvent()
		if err == io.EOF {
			return summarizer.Finalize(), nil
		}
		if err != nil {
			return nil, err
		}
		summarizer.Event(&event)
	}
}

func main() {
	summary, err := summarize(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for id, goroutine := range summary.Goroutines {
		fmt.Printf("%d\t%s\n", id, goroutine.Name)
	}
}
