// Measures Go's own tracer from outside: what the same calls cost with tracing on and off.
//
//	go-record CASE off|on THREADS ROUNDS
//
// prints NS BYTES: the wall clock's time of a round, and the bytes of the whole trace. The cases are
// those of trail-bench-record as far as Go has them: sched (a yield: two events), channel (a message
// there and back: six), log, region, start-stop (with 1,000 goroutines that wait).
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

func sched(rounds int) {
	for i := 0; i < rounds; i++ {
		runtime.Gosched()
	}
}

func channel(rounds int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for i := range there {
			back <- i
		}
	}()
	for i := 0; i < rounds; i++ {
		there <- i
		<-back
	}
	close(there)
}

func log(rounds int) {
	for i := 0; i < rounds; i++ {
		trace.Log(context.Background(), "category", "sixteen letters.")
	}
}

func region(rounds int) {
	for i := 0; i < rounds; i++ {
		trace.StartRegion(context.Background(), "region").End()
	}
}

func startStop(rounds int, out *counter) {
	hold := make(chan int)
	for i := 0; i < 1000; i++ {
		go func() { <-hold }()
	}
	time.Sleep(10 * time.Millisecond)
	for i := 0; i < rounds; i++ {
		start(out)
		trace.Stop()
	}
}

func start(out *counter) {
	if err := trace.Start(out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The function again in a stack that is as deep as the one of the recorder's measurement.
//
//go:noinline
func descend(run func(int), rounds, depth int) {
	if depth > 0 {
		descend(run, rounds, depth-1)
		return
	}
	run(rounds)
}

func measure(run func(int), threads, rounds int) time.Duration {
	var wg sync.WaitGroup
	begin := time.Now()
	for i := 0; i < threads; i++ {
		wg.Add(1)
		go func() {
			descend(run, rounds, 5)
			wg.Done()
		}()
	}
	wg.Wait()
	return time.Since(begin)
}

func main() {
	cases := map[string]func(int){"sched": sched, "channel": channel, "log": log, "region": region}
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: go-record CASE off|on THREADS ROUNDS")
		os.Exit(2)
	}
	threads, _ := strconv.Atoi(os.Args[3])
	rounds, _ := strconv.Atoi(os.Args[4])
	on := os.Args[2] == "on"
	var out counter
	var took time.Duration
	if os.Args[1] == "start-stop" {
		startStop(1, &out)
		out.bytes = 0
		begin := time.Now()
		startStop(rounds, &out)
		took = time.Since(begin) - 10*time.Millisecond
	} else {
		if run := cases[os.Args[1]]; run != nil {
			runtime.GOMAXPROCS(threads)
			measure(run, threads, rounds/20)
			if on {
				start(&out)
			}
			took = measure(run, threads, rounds)
			trace.Stop()
		}
	}
	fmt.Printf("%.3f %d\n", float64(took.Nanoseconds())/float64(rounds), out.bytes)
}
