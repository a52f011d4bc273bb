// What `go tool trace -d` of Go 1.21 prints: see answer.go.
package main

import (
	"bytes"
	"fmt"
	"internal/trace"
)

func read(text *bytes.Buffer, data []byte) error {
	parsed, err := trace.Parse(bytes.NewReader(data), "")
	if err != nil {
		return err
	}
	for _, event := range parsed.Events {
		fmt.Fprintln(text, event)
	}
	return nil
}
