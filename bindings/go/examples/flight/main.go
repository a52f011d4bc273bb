//go:build go1.25

// Flight is a server that knows why it is slow: it keeps the newest seconds of its own trace, and trail's findings about them
// are served at /debug/trail.
package main

import (
	"fmt"
	"log"
	"net/http"
	"runtime/trace"
	"sync"
	"time"

	"trail"
)

var (
	mu    sync.Mutex
	count int
)

// visit holds a lock for too long.
func visit(w http.ResponseWriter, _ *http.Request) {
	mu.Lock()
	defer mu.Unlock()
	count++
	time.Sleep(50 * time.Millisecond) // a slow disk
	fmt.Fprintln(w, "visit", count)
}

func main() {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 10 * time.Second})
	if err := recorder.Start(); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", visit)
	http.Handle("/debug/trail", &trail.Handler{Recorder: recorder})
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}
