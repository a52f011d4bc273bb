// What `go tool trace -d=parsed` of Go 1.27 prints: see answer.go.
package main

import (
	"bytes"
	"fmt"
	"internal/trace"
	"io"
)

func read(text *bytes.Buffer, data []byte) error {
	reader, err := trace.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for {
		event, err := reader.ReadEvent()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(text, event.String())
	}
}
