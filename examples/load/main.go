// Load is a small program with a bit of everything that an execution trace shows: goroutines that talk
// over channels, fight for a mutex, sleep, write files, serve and fetch HTTP on the loopback interface,
// and allocate enough for the garbage collector to run; with tasks, regions and logs.
//
//	go run main.go -o load.trace
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/trace"
	"sync"
	"time"
)

var (
	output = flag.String("o", "load.trace", "write the trace here")
	rounds = flag.Int("rounds", 20, "rounds of each kind of work")
)

// pipeline passes numbers through stages of goroutines that are joined by channels.
func pipeline(stages, numbers int) int {
	source := make(chan int)
	last := source
	for i := 0; i < stages; i++ {
		next := make(chan int, i)
		go func(in <-chan int, out chan<- int) {
			for n := range in {
				out <- n + 1
			}
			close(out)
		}(last, next)
		last = next
	}
	go func() {
		for i := 0; i < numbers; i++ {
			source <- i
		}
		close(source)
	}()
	sum := 0
	for n := range last {
		sum += n
	}
	return sum
}

// account is shared by goroutines that wait for its mutex.
type account struct {
	mu      sync.Mutex
	balance int
}

func (a *account) deposit(amount int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance += amount
	runtime.Gosched()
}

func contend(workers int) int {
	var shared account
	var wait sync.WaitGroup
	for w := 0; w < workers; w++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := 0; i < 5; i++ {
				shared.deposit(i)
			}
		}()
	}
	wait.Wait()
	return shared.balance
}

// choose waits for whichever comes first: a tick, a value or the end.
func choose(ctx context.Context) int {
	values := make(chan int)
	ticker := time.NewTicker(200 * time.Microsecond)
	defer ticker.Stop()
	go func() {
		time.Sleep(300 * time.Microsecond)
		values <- 42
	}()
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-ticker.C:
		case v := <-values:
			return v
		}
	}
}

type tree struct {
	left, right *tree
	payload     [64]byte
}

func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1)}
}

func scribble(round int) error {
	file, err := os.CreateTemp("", "load-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	for i := 0; i < 4; i++ {
		if _, err := fmt.Fprintf(file, "round %d line %d\n", round, i); err != nil {
			return err
		}
	}
	return file.Sync()
}

func fetch(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func serve() (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer trace.StartRegion(r.Context(), "handle").End()
		fmt.Fprintln(w, "hello", r.URL.Path)
	}))
	return listener, nil
}

// round does one of each, as one task of the trace.
func round(n int, client *http.Client, url string) error {
	ctx, task := trace.NewTask(context.Background(), "round")
	defer task.End()
	trace.Logf(ctx, "round", "number %d", n)

	trace.WithRegion(ctx, "pipeline", func() { pipeline(3, 8) })
	trace.WithRegion(ctx, "contend", func() { contend(4) })
	trace.WithRegion(ctx, "choose", func() { choose(ctx) })
	trace.WithRegion(ctx, "grow", func() { grow(10) })
	defer trace.StartRegion(ctx, "outside").End()
	if err := scribble(n); err != nil {
		return err
	}
	return fetch(client, fmt.Sprintf("%s/%d", url, n))
}

func run() error {
	file, err := os.Create(*output)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := trace.Start(file); err != nil {
		return err
	}
	defer trace.Stop()

	listener, err := serve()
	if err != nil {
		return err
	}
	defer listener.Close()
	url := "http://" + listener.Addr().String()
	client := &http.Client{Timeout: 5 * time.Second}
	for n := 0; n < *rounds; n++ {
		if err := round(n, client, url); err != nil {
			return err
		}
	}
	runtime.GC()
	return nil
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
