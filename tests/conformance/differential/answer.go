// Answer prints what a parser of Go makes of traces: for each path on a line of standard input, a line with the sizes of
// the events' text and of the error's, then both. With the parser's `read` it is built as a part of Go's tree.
package main

import (
	"bufio"
	"bytes"
	"fmt"
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
	return read(text, data)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var text bytes.Buffer
		message := ""
		if err := print(&text, lines.Text()); err != nil {
			message = err.Error()
			if message == "" {
				message = "error"
			}
		}
		fmt.Printf("%d %d\n%s%s", text.Len(), len(message), text.Bytes(), message)
	}
}
