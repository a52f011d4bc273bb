// Go_v1 answers for Go 1.21 what `go tool trace -d` prints of traces: for each path on a line of standard input, a line
// with the sizes of the events' text and of the error's, then both. It is built as a part of Go's tree.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"internal/trace"
	"os"
)

func print(text *bytes.Buffer, path string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parsed, err := trace.Parse(bytes.NewReader(data), "")
	if err != nil {
		return err
	}
	for _, event := range parsed.Events {
		fmt.Fprintln(text, event)
	}
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var text bytes.Buffer
		message := ""
		if err := print(&text, lines.Text()); err != nil {
			message = err.Error()
		}
		fmt.Printf("%d %d\n%s%s", text.Len(), len(message), text.Bytes(), message)
	}
}
