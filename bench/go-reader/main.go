// Go-reader reads a trace to its end with Go's own reader and prints how many events there were. It must
// be built inside a GOROOT, because it imports internal/trace: bench/run makes one of symbolic links.
package main

import (
	"fmt"
	"internal/trace"
	"io"
	"os"
)

func count(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	reader, err := trace.NewReader(file)
	if err != nil {
		return 0, err
	}
	for events := 0; ; events++ {
		if _, err := reader.ReadEvent(); err == io.EOF {
			return events, nil
		} else if err != nil {
			return events, err
		}
	}
}

func main() {
	events, err := count(os.Args[1])
	fmt.Println(events)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
